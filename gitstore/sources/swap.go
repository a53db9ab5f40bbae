package sources

import "os"

// swap exchanges the directories a and b, atomically if the system can. Otherwise b is missing for
// a moment. scratch returns new names.
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
