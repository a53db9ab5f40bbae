package remotetest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Refusal describes how a hosting service refuses a push that it received completely.
type Refusal struct {
	Text string // the service's message, which git shows as "remote: …"
	// Reason appears beside the ref ("! [remote rejected] main -> main (reason)"). If it
	// is empty, git prints its own "pre-receive hook declined".
	Reason string
}

// Refuse makes a repository refuse every push to a branch from now on, through git hooks.
// A zero Refusal accepts pushes again.
func (s *Server) Refuse(name, branch string, f Refusal) {
	s.t.Helper()
	dir := s.Dir(name)
	pre, proc := filepath.Join(dir, "hooks", "pre-receive"), filepath.Join(dir, "hooks", "proc-receive")
	for _, p := range []string{pre, proc} {
		if err := os.Remove(p); err != nil && !os.IsNotExist(err) {
			s.t.Fatal(err)
		}
	}
	s.run(dir, nil, "config", "--unset-all", "receive.procReceiveRefs") // fails if it is not set
	if f == (Refusal{}) {
		return
	}
	ref := "refs/heads/" + branch
	say := "printf '%s' " + quote(f.Text) + " >&2\n"
	if f.Reason == "" {
		s.must(os.WriteFile(pre, []byte("#!/bin/sh\ncat >/dev/null\n"+say+"exit 1\n"), 0o755))
		return
	}
	// Only the proc-receive hook (githooks(5)) can give a reason. It uses packet lines,
	// whose first four characters are their length.
	s.Git(name, "config", "receive.procReceiveRefs", ref)
	reply := fmt.Sprintf("ng %s %s", ref, f.Reason)
	s.must(os.WriteFile(proc, []byte("#!/bin/sh\n"+say+
		"printf '000dversion=10000'\n"+
		fmt.Sprintf("printf '%%s' %s\n", quote(fmt.Sprintf("%04x%s0000", len(reply)+4, reply)))+
		"cat >/dev/null\n"), 0o755))
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// LargeFile is GitHub's refusal of a file over 100 MB.
func LargeFile(path string) Refusal {
	return Refusal{Text: `error: Trace: 6f3c0a1c0d3b1e5a2f4b6c8d0e1f2a3b4c5d6e7f8091a2b3c4d5e6f708192a3b
error: See https://gh.io/lfs for more information.
error: File ` + path + ` is 120.00 MB; this exceeds GitHub's file size limit of 100.00 MB
error: GH001: Large files detected. You may want to try Git Large File Storage - https://git-lfs.github.com.
`}
}

// ProtectedBranch is GitHub's refusal of a push to a protected branch.
func ProtectedBranch(branch string) Refusal {
	return Refusal{
		Text: "error: GH006: Protected branch update failed for refs/heads/" + branch + ".\n" +
			"error: Changes must be made through a pull request.\n",
		Reason: "protected branch hook declined",
	}
}

// Ruleset is GitHub's refusal of a push that a repository's rules forbid.
func Ruleset(branch string) Refusal {
	return Refusal{
		Text: "error: GH013: Repository rule violations found for refs/heads/" + branch + ".\n" +
			"Review all repository rules at https://github.com/octo/notes/rules?ref=refs%2Fheads%2F" + branch + "\n\n" +
			"- Changes must be made through a pull request.\n\n",
		Reason: "push declined due to repository rule violations",
	}
}

// PushProtection is GitHub's refusal of a push that contains a secret.
func PushProtection(branch, commit, path string, line int) Refusal {
	return Refusal{
		Text: fmt.Sprintf(`error: GH013: Repository rule violations found for refs/heads/%s.

- GITHUB PUSH PROTECTION
  —————————————————————————————————————————
    Resolve the following violations before pushing again

    - Push cannot contain secrets

    
     (?) Learn how to resolve a blocked push
     https://docs.github.com/code-security/secret-scanning/working-with-secret-scanning-and-push-protection/working-with-push-protection-from-the-command-line#resolving-a-blocked-push
    

      —— Amazon AWS Access Key ID ——————————————————————————
       locations:
         - commit: %s
           path: %s:%d

       (?) To push, remove secret from commit(s) or follow this URL to allow the secret.
       https://github.com/octo/notes/security/secret-scanning/unblock-secret/2abcDEFghiJKLmno

`, branch, commit, path, line),
		Reason: "push declined due to repository rule violations",
	}
}

// WorkflowPermission is GitHub's refusal of a workflow that an App without the permission
// workflows pushes.
func WorkflowPermission(path string) Refusal {
	return Refusal{Reason: "refusing to allow a GitHub App to create or update workflow `" + path + "` without `workflows` permission"}
}
