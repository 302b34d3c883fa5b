"""The functions behind the API's paths, one module for each kind of object. `routes` maps paths to functions."""
