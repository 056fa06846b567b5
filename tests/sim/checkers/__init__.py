"""Every checker passes an honest history and turns red on one that was broken in one place."""
