"""What may leave the machine: a folder with a guarantee, its model card, and the check of both."""
