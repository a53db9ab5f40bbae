package gitcmd

// FsckConfig returns configuration for git's fsck that tolerates harmless defects of old
// histories. All other errors of fsck stay errors. section is "fetch.fsck" for fetched
// objects, or "fsck" for git fsck.
func FsckConfig(section string) []string {
	return []string{
		section + ".missingSpaceBeforeDate=ignore",
		section + ".zeroPaddedFilemode=ignore",
		section + ".badTimezone=ignore",
	}
}
