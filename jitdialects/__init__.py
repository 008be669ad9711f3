"""A compiler toolkit in pure Python for dynamic tensor programs."""
