package dial

// FreshTurn makes a turn to read long answers that belongs to the caller's bubble.
func FreshTurn() { turn = make(chan struct{}, 1) }
