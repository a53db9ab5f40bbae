package tools

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
)

// Limits of each kind of entry in an answer. Further entries are only counted.
const (
	maxListedFiles    = 20
	maxListedProblems = 10
	maxListedEarlier  = 3 // uncommitted files that earlier answers named too
	maxListedCommits  = 10
	maxMetaFiles      = 200
)

// Maximum lengths, in characters, of texts that other packages write. None of those texts is
// longer, so the advice in them is never cut off.
const (
	maxReasonChars = 1000 // why a path was not committed
	maxNoteChars   = 1500
	maxPushChars   = 600
)

// bashText returns the text of a command's answer: the output, then one bracketed line for
// each note. A line about changes that were not saved precedes the output. Otherwise a model
// that reads about a commit would assume that all changes are saved. writer is the name of the
// tool that can save changes. It is empty if the caller has no such tool.
func bashText(q bashCall, r service.CommandResult, writer string) string {
	var b strings.Builder
	if r.NotSaved != nil {
		fmt.Fprintf(&b, "[NOT SAVED: %s]\n", clip(notSavedText(r.NotSaved), 1000))
	}
	out, err := outputText(r.Stdout.Text), outputText(r.Stderr.Text)
	switch {
	case out != "" && err != "":
		fmt.Fprintf(&b, "stdout:\n%sstderr:\n%s", out, err)
	case err != "":
		fmt.Fprintf(&b, "stderr:\n%s", err)
	case out != "":
		b.WriteString(out)
	case r.End == service.Exited:
		b.WriteString("(no output)\n")
	}
	line := func(format string, a ...any) {
		b.WriteByte('[')
		fmt.Fprintf(&b, format, a...)
		b.WriteString("]\n")
	}
	if hasCommands(out + "\n" + err) {
		line("%s", outputWarning)
	}
	if t := endText(q, r); t != "" {
		line("%s", t)
	}
	for _, n := range r.Notes {
		if r.End == service.Detached && r.JobDir != "" && strings.Contains(n, r.JobDir) {
			continue // endText already names the files of the job's output
		}
		line("%s", clip(n, maxNoteChars))
	}
	if n := readOnlyHint(q, r, writer); n != "" {
		line("%s", n)
	}
	if n := len(r.Commits) - maxListedCommits; n > 0 {
		line("%s before these: git log", plural(n, "commit", "commits"))
	}
	for _, c := range lastCommits(r) {
		commitText(&b, c, len(r.Commits) > 1)
	}
	if s := pushText(r); s != "" {
		line("%s", s)
	}
	problemsText(&b, r)
	notFactsText(&b, q.remember, r.NotFacts)
	return strings.TrimSuffix(b.String(), "\n")
}

// outputText returns the output of a stream as valid UTF-8. Unless it is empty, it ends with a
// line break.
func outputText(s string) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	if s != "" && !strings.HasSuffix(s, "\n") {
		s += "\n"
	}
	return s
}

// notSavedText says that a command's changes were not committed. Errors of the sandbox
// already say what happens to the changes. Errors of a commit do not.
func notSavedText(err error) string {
	text := "The changes could not be committed: " + fault.PublicOf(err)
	if fault.CodeOf(err) == fault.Unavailable {
		return text
	}
	return text + " They stay in the sandbox, and the next command tries again to commit them."
}

// lostText says what is lost when a sandbox ends during a command.
const lostText = "The command's changes, the background processes and /tmp are lost. The next command starts a new sandbox."

// longCommand is the shortest duration that an answer mentions for a command that exited.
const longCommand = 10 * time.Second

// endText says how a command ended, or that it still runs. It returns "" for a quick success.
func endText(q bashCall, r service.CommandResult) string {
	took := durationText(r.Duration)
	why := ""
	if r.Detail != "" {
		why = ": " + strings.TrimSuffix(r.Detail, ".")
	}
	switch r.End {
	case service.Detached:
		kept := " Its changes are committed when it ends."
		if q.readOnly {
			kept = ""
		}
		return fmt.Sprintf("job %s, still running after %s%s. Its output: tail -n 50 %s/stdout %s/stderr; whether it has ended: cat %s/status; to stop it and everything it started: kill -- -$(cat %s/pid).%s",
			r.JobID, took, why, r.JobDir, r.JobDir, r.JobDir, r.JobDir, kept)
	case service.TimedOut:
		return fmt.Sprintf("TIMED OUT after %s%s", took, why)
	case service.Canceled:
		return fmt.Sprintf("canceled after %s%s", took, why)
	case service.OutOfMemory:
		return fmt.Sprintf("OUT OF MEMORY after %s: %s", took, cmp.Or(r.Detail, "The sandbox reached its memory limit and was ended. "+lostText))
	case service.Stopped:
		saved := " The changes that it had made were saved."
		if q.readOnly || r.NotSaved != nil {
			saved = ""
		}
		return fmt.Sprintf("STOPPED after %s: the sandbox is shutting down, so the command was ended early.%s", took, saved)
	case service.Lost:
		return fmt.Sprintf("SANDBOX LOST after %s: %s", took, cmp.Or(r.Detail, "It ended before the command did. "+lostText))
	}
	if r.ExitCode == 0 && r.Signal == "" && why == "" && r.Duration < longCommand {
		return ""
	}
	end := fmt.Sprintf("exit code %d", r.ExitCode)
	if r.Signal != "" {
		end += " (ended by " + r.Signal + ")"
	}
	if r.Duration >= longCommand {
		end += " after " + took
	}
	return end + why
}

// lastCommits returns the commits that an answer lists.
func lastCommits(r service.CommandResult) []space.Commit {
	return r.Commits[max(0, len(r.Commits)-maxListedCommits):]
}

// commitText lists the files of a commit. If named is set, it also quotes the message, to tell
// several commits apart. The message of a single commit is the one that the model just wrote.
func commitText(b *strings.Builder, c space.Commit, named bool) {
	subject, _, _ := strings.Cut(c.Message, "\n")
	if subject = strings.TrimSpace(subject); subject != "" {
		subject = " “" + clip(subject, 100) + "”"
	}
	if !named {
		subject = ""
	}
	fmt.Fprintf(b, "[commit %s%s, %s]\n", c.ID.Short(), subject, plural(len(c.Files), "file", "files"))
	for i, f := range c.Files {
		if i == maxListedFiles {
			fmt.Fprintf(b, "  … %s more: git show --stat %s\n", thousands(int64(len(c.Files)-i)), c.ID.Short())
			break
		}
		fmt.Fprintf(b, "  %c %s\n", f.Status, f.Path)
	}
}

// pushText says whether the commits have reached the remote. If pushes fail, even an answer
// without a commit says so, because earlier commits wait too.
func pushText(r service.CommandResult) string {
	detail := ""
	if d := strings.Join(strings.Fields(r.Push.Detail), " "); d != "" {
		detail = ": " + clip(strings.TrimSuffix(d, "."), maxPushChars)
	}
	if len(r.Commits) == 0 {
		if r.Push.State == "failed" {
			return "the space's commits are NOT PUSHED to its remote" + detail
		}
		return ""
	}
	switch r.Push.State {
	case "local": // without a remote, nobody expects a push
		return ""
	case "pushed":
		return "pushed" + detail
	case "queued":
		return "committed here; the push to the remote follows" + detail
	case "failed":
		return "committed here, but NOT PUSHED" + detail
	}
	return ""
}

// problemsText lists the changes that were not committed, the warnings and the conflicts. It quotes
// the paths of files that are not committed, because such a path can contain any bytes.
func problemsText(b *strings.Builder, r service.CommandResult) {
	conflicts := allConflicts(r)
	list := func(title string, n, most int, more string, item func(i int) string) {
		if n == 0 {
			return
		}
		fmt.Fprintf(b, "[%s]\n", title)
		for i := range n {
			if i == most {
				fmt.Fprintf(b, "  … %s more%s\n", thousands(int64(n-i)), more)
				break
			}
			fmt.Fprintf(b, "  %s\n", item(i))
		}
	}
	refused, earlier := notCommitted(r)
	all := append(refused, earlier...)
	list("NOT COMMITTED. Unless marked as lost, these files stay in /space until you fix, rename or remove them; use /tmp for temporary files",
		len(all), min(len(refused), maxListedProblems)+maxListedEarlier, ": satchel space status", func(i int) string {
			return fmt.Sprintf("%s: %s", quotePath(all[i].Path), clip(all[i].Why, maxReasonChars))
		})
	warnings := allWarnings(r)
	list("WARNING: committed, but needs a look", len(warnings), maxListedProblems, "", func(i int) string {
		return fmt.Sprintf("%s: %s", quotePath(warnings[i].Path), clip(warnings[i].Why, maxReasonChars))
	})
	list("CONFLICT: somebody else changed these files meanwhile, and both versions were kept. Merge them into the first and delete the second", len(conflicts), maxListedProblems, "", func(i int) string {
		if conflicts[i].Kept == "" {
			return fmt.Sprintf("%s was not deleted: it has a newer version", conflicts[i].Path)
		}
		return fmt.Sprintf("%s (theirs) and %s (yours)", conflicts[i].Path, conflicts[i].Kept)
	})
}

// notFactsText lists the files that were written under memory/ but will not be remembered.
func notFactsText(b *strings.Builder, remember string, list []service.MemoryFact) {
	if len(list) == 0 {
		return
	}
	b.WriteString("[NOT REMEMBERED: these files are committed, but they are not valid facts:]\n")
	for i, f := range list {
		if i == maxListedProblems {
			fmt.Fprintf(b, "  … %s more\n", thousands(int64(len(list)-i)))
			break
		}
		fmt.Fprintf(b, "  %s: %s\n", quotePath(string(f.Path)), oneLine(f.Problem, maxReasonChars))
	}
	fmt.Fprintf(b, "[Call %s with what such a file says and remove the file, correct it, or move it to knowledge/. A fact is memory/<type>/<key>.md and begins with three lines:]\n%s\n",
		remember, factForm)
}

// notFactsMeta is the machine-readable form of notFactsText.
func notFactsMeta(list []service.MemoryFact) []map[string]any {
	var out []map[string]any
	for _, f := range list[:min(len(list), maxMetaFiles)] {
		out = append(out, map[string]any{"path": string(f.Path), "why": f.Problem})
	}
	return out
}

// factForm is how the file of a fact begins.
const factForm = "---\nvalue: The fact in one sentence\n---"

// notCommitted returns the files that the commits of this command refused, and those that earlier
// commands left uncommitted. A refused file has its entry in r.Pending if there is one, because
// that entry also says what happens to the file. Lost files come first in both lists.
func notCommitted(r service.CommandResult) (refused, earlier []space.Rejection) {
	held := map[string]space.Rejection{}
	for _, h := range r.Pending {
		held[h.Path] = h
	}
	for _, c := range r.Commits {
		for _, x := range c.Rejected {
			if h, ok := held[x.Path]; ok {
				x = h
			}
			refused = append(refused, x)
		}
	}
	earlier = heldBack(r)
	lostFirst := func(x, y space.Rejection) int {
		switch {
		case x.Lost == y.Lost:
			return 0
		case x.Lost:
			return -1
		}
		return 1
	}
	slices.SortStableFunc(refused, lostFirst)
	slices.SortStableFunc(earlier, lostFirst)
	return refused, earlier
}

// allWarnings returns the warnings of all commits.
func allWarnings(r service.CommandResult) []space.Warning {
	var all []space.Warning
	for _, c := range r.Commits {
		all = append(all, c.Warnings...)
	}
	return all
}

// allConflicts returns the conflicts of all commits, and the conflicts without a commit.
func allConflicts(r service.CommandResult) []space.Conflict {
	var all []space.Conflict
	for _, c := range r.Commits {
		all = append(all, c.Conflicts...)
	}
	for _, x := range r.Conflicts {
		if !slices.Contains(all, x) {
			all = append(all, x)
		}
	}
	return all
}

// heldBack returns the files of r.Pending that none of this command's commits refused.
func heldBack(r service.CommandResult) []space.Rejection {
	refused := map[string]bool{}
	for _, c := range r.Commits {
		for _, x := range c.Rejected {
			refused[x.Path] = true
		}
	}
	var held []space.Rejection
	for _, x := range r.Pending {
		if !refused[x.Path] {
			held = append(held, x)
		}
	}
	return held
}

func quotePath(p string) string { return fmt.Sprintf("%q", clip(p, 200)) }

func durationText(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
}

// bashMeta returns the machine-readable part of an answer. Its lists are limited. A key is
// missing if there is nothing to report. For example, there is no "limits" if the command
// reached none of the limits that sandbox.Result.Limits describes.
func bashMeta(q bashCall, r service.CommandResult) map[string]any {
	m := map[string]any{
		"end":         r.End.String(),
		"duration_ms": r.Duration.Milliseconds(),
		"timed_out":   r.End == service.TimedOut,
		"truncated":   r.Stdout.Cut > 0 || r.Stderr.Cut > 0,
		"restarted":   r.Restarted,
	}
	if r.NotSaved != nil || !q.readOnly && (r.End == service.OutOfMemory || r.End == service.Lost) {
		m["not_saved"] = true
	}
	if r.End == service.Exited {
		m["exit_code"] = r.ExitCode
		if r.Signal != "" {
			m["signal"] = r.Signal
		}
	}
	if r.End == service.Detached {
		m["job"] = map[string]any{"id": r.JobID, "dir": r.JobDir}
	}
	if len(r.Limits) > 0 {
		m["limits"] = r.Limits
	}
	if r.Push.State != "" {
		m["push"] = r.Push.State
	}
	var commits []string
	files, conflicts, refused := []map[string]any{}, []map[string]any{}, []map[string]any{}
	total := 0
	for _, c := range lastCommits(r) {
		commits = append(commits, string(c.ID))
		for _, f := range c.Files {
			if total++; len(files) < maxMetaFiles {
				e := map[string]any{"path": string(f.Path), "status": string(rune(f.Status))}
				if f.New != "" {
					e["etag"] = string(f.New)
				}
				files = append(files, e)
			}
		}
		for _, x := range c.Rejected[:min(len(c.Rejected), maxMetaFiles)] {
			refused = append(refused, refusal(x))
		}
	}
	all := allConflicts(r)
	for _, x := range all[:min(len(all), maxMetaFiles)] {
		conflicts = append(conflicts, map[string]any{"path": string(x.Path), "kept": string(x.Kept)})
	}
	if len(commits) > 0 {
		m["commit"], m["commits"] = commits[len(commits)-1], commits
		m["files"], m["files_total"] = files, total
	}
	if len(conflicts) > 0 {
		m["conflicts"] = conflicts
	}
	var warnings []map[string]any
	for _, w := range allWarnings(r) {
		if len(warnings) < maxMetaFiles {
			warnings = append(warnings, map[string]any{"path": w.Path, "why": w.Why})
		}
	}
	if len(warnings) > 0 {
		m["warnings"] = warnings
	}
	if len(refused) > 0 {
		m["refused"] = refused
	}
	var held []map[string]any
	for _, x := range heldBack(r) {
		if len(held) < maxMetaFiles {
			held = append(held, refusal(x))
		}
	}
	if len(held) > 0 {
		m["held"] = held
	}
	if len(r.NotFacts) > 0 {
		m["not_facts"] = notFactsMeta(r.NotFacts)
	}
	for name, saved := range map[string]string{"stdout_file": r.Stdout.Saved, "stderr_file": r.Stderr.Saved} {
		if saved != "" {
			m[name] = saved
		}
	}
	return m
}

func refusal(x space.Rejection) map[string]any {
	return map[string]any{"path": strings.ToValidUTF8(x.Path, "\ufffd"), "why": x.Why}
}
