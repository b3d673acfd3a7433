"""From a table to a store: formats, roles of columns, coding, writing."""
