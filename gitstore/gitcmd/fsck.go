package gitcmd

// FsckConfig returns configuration for git's fsck that tolerates defects of old
// histories which harm nobody; everything else that it calls an error still is
// one. section is "fetch.fsck" for what a fetch brings, "fsck" for git fsck.
func FsckConfig(section string) []string {
	return []string{
		section + ".missingSpaceBeforeDate=ignore",
		section + ".zeroPaddedFilemode=ignore",
		section + ".badTimezone=ignore",
	}
}
