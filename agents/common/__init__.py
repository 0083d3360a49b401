"""What all agents share: action values, the endgame, model files."""
