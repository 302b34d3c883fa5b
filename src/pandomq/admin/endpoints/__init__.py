"""What the paths of the API mean, one module for each kind of object. `routes` says which path is which function."""
