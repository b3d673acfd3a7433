"""What every part needs: errors, seeds, shares, sizes, records, publishing, the budget."""
