package web

// EditLimits are the limits of the pages that change files. Zero means the default.
type EditLimits struct {
	MaxFile   int64 // bytes of a file, the same as in the store of spaces; default 10 MiB
	MaxChange int64 // bytes of a change, the same as in the store of spaces; default 100 MiB
	MaxText   int64 // bytes of a text that a page can edit; default 1 MiB
	MaxFiles  int   // files per upload, move or deletion; default 1,000
	Uploads   int   // uploads and moves in memory at once; default 2
}

func (l EditLimits) withDefaults() EditLimits {
	or := func(v *int64, d int64) {
		if *v <= 0 {
			*v = d
		}
	}
	or(&l.MaxFile, DefaultMaxFile)
	or(&l.MaxChange, DefaultMaxChange)
	or(&l.MaxText, DefaultMaxText)
	for v, d := range map[*int]int{&l.MaxFiles: DefaultMaxFiles, &l.Uploads: DefaultUploads} {
		if *v <= 0 {
			*v = d
		}
	}
	l.MaxText = min(l.MaxText, l.MaxFile)
	return l
}

// Defaults of EditLimits.
const (
	DefaultMaxFile   = 10 << 20
	DefaultMaxChange = 100 << 20
	DefaultMaxText   = 1 << 20
	DefaultMaxFiles  = 1000
	DefaultUploads   = 2
)
