package gvisor

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"satchel/internal/fault"
)

func TestNamespaceRemedy(t *testing.T) {
	for setting, want := range map[string]string{
		"kernel/apparmor_restrict_unprivileged_userns=1": "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0", // Ubuntu 24.04
		"kernel/unprivileged_userns_clone=0":             "sudo sysctl -w kernel.unprivileged_userns_clone=1",             // older Debian
		"user/max_user_namespaces=0":                     "sudo sysctl -w user.max_user_namespaces",                       // RHEL
		"kernel/apparmor_restrict_unprivileged_userns=0": "seccomp profile",
		"": "seccomp profile",
	} {
		name, value, _ := strings.Cut(setting, "=")
		got := namespaceRemedy(1000, func(n string) string {
			if n == name {
				return value
			}
			return ""
		})
		if !strings.Contains(got, want) || !strings.Contains(got, "as root") {
			t.Errorf("%s: %q does not say %q", setting, got, want)
		}
	}
	if got := namespaceRemedy(0, func(string) string { return "" }); !strings.Contains(got, "CAP_SYS_ADMIN") {
		t.Errorf("as root: %q", got)
	}
	if err := namespaceFault(unix.EPERM); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("EPERM: %v", err)
	}
	if err := namespaceFault(unix.ENOENT); fault.CodeOf(err) != fault.Internal {
		t.Errorf("ENOENT: %v", err)
	}
}
