"""What `train.py` runs: learners, self-play, the league, the folder of a run."""
