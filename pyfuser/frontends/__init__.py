"""What programs call: each frontend records calls into the one trace."""
