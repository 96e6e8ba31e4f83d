"""What each kind of release or training is attacked with; ``audit`` chooses by what it reads."""
