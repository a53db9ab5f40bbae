package child

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"satchel/internal/space"
)

// shownFile is the file in a bundle with the size of the machine that the sentry shows
// inside.
const shownFile = "shown.json"

// shown is the size of the machine as seen inside. Programs choose their heaps and threads
// by it, and the host's figures should stay private. gVisor would take the size from cgroups
// that it creates, but here it creates none.
type shown struct {
	Memory int64 `json:"memory"` // bytes; 0: the host's
	CPUs   int   `json:"cpus"`   // 0: the host's
}

// leastCPUs is the minimum of shown.CPUs. gVisor has the same minimum, because programs omit
// their locks if there is only one processor.
const leastCPUs = 2

func shownOf(lim space.Limits, host int) shown {
	s := shown{Memory: lim.Memory}
	if lim.CPUs > 0 {
		s.CPUs = min(host, max(leastCPUs, int(math.Ceil(lim.CPUs))))
	}
	return s
}

func writeShown(bundle string, lim space.Limits) error {
	raw, err := json.Marshal(shownOf(lim, runtime.NumCPU()))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(bundle, shownFile), raw, 0o600); err != nil {
		return fmt.Errorf("writing the bundle: %w", err)
	}
	return nil
}

// showLimits returns the command line of a sentry with the limits of its bundle. It returns
// any other command line unchanged.
func showLimits(args []string) []string {
	boot := slices.Index(args, "boot")
	if args[0] != "runsc-sandbox" || boot < 0 {
		return args
	}
	raw, err := os.ReadFile(filepath.Join(flagOf(args, "bundle"), shownFile))
	var s shown
	if err != nil || json.Unmarshal(raw, &s) != nil {
		return args
	}
	return withShown(args, boot, s)
}

// withShown returns args with the flags of the boot command that show s. boot is the index of
// the command in args.
func withShown(args []string, boot int, s shown) []string {
	var add []string
	out := slices.Clone(args[:boot+1])
	drop := map[string]bool{}
	if s.Memory > 0 {
		drop["total-memory"] = true
		add = append(add, "--total-memory="+strconv.FormatInt(s.Memory, 10))
	}
	if s.CPUs > 0 {
		drop["cpu-num"] = true
		add = append(add, "--cpu-num="+strconv.Itoa(s.CPUs))
	}
	out = append(out, add...)
	for i := boot + 1; i < len(args); i++ {
		name, _, joined := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		if !strings.HasPrefix(args[i], "-") || !drop[name] {
			out = append(out, args[i])
		} else if !joined {
			i++ // skip the flag's value
		}
	}
	return out
}

// flagOf returns the value of a flag in any of its forms, or "" if the flag is missing.
func flagOf(args []string, name string) string {
	for i, a := range args {
		flag := strings.TrimLeft(a, "-")
		if v, ok := strings.CutPrefix(flag, name+"="); ok && flag != a {
			return v
		}
		if flag == name && flag != a && i+1 < len(args) {
			return args[i+1]
		}
	}
	return ""
}
