"""The native module; its sources lie beside this file, its typed faces where they are used."""
