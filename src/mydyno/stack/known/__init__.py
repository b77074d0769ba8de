"""What is known of server variables: values, ranges, replacements, durability, data shape."""
