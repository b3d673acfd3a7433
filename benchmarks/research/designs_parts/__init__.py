"""What `designs.py` is made of: screens, closing stages, cuts, and the designs that join them."""
