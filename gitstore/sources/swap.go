package sources

import "os"

// swap lets two directories change places, at once where the system can; else
// there is a moment in which the second is not there. scratch gives new names.
func swap(a, b string, scratch func() string) error {
	if exchange(a, b) == nil {
		return nil
	}
	aside := scratch()
	if err := os.Rename(b, aside); err != nil {
		return err
	}
	if err := os.Rename(a, b); err != nil {
		return err
	}
	return os.Rename(aside, a)
}
