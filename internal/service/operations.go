package service

import (
	"context"
	"encoding/json"
	"reflect"
	"runtime"
	"strings"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// Method is a method expression of Service, such as (*Service).PublishSource.
type Method[In, Out any] func(*Service, context.Context, Actor, In) (Out, error)

// Name returns the name of the method, such as "PublishSource".
func (m Method[In, Out]) Name() string {
	full := runtime.FuncForPC(reflect.ValueOf(m).Pointer()).Name()
	return full[strings.LastIndexByte(full, '.')+1:]
}

// Operation describes an operation, for fronts that serve all operations by name.
type Operation struct {
	Name  string
	Right Right
	// call is nil if the input or the result is not JSON.
	call func(ctx context.Context, s *Service, a Actor, in json.RawMessage) (any, error)
}

// HasJSON reports whether Call can perform the operation.
func (o Operation) HasJSON() bool { return o.call != nil }

// Call performs the operation with an input in JSON.
func (o Operation) Call(ctx context.Context, s *Service, a Actor, in json.RawMessage) (any, error) {
	return o.call(ctx, s, a, in)
}

// Operations lists every operation with the right that it requires.
func Operations() []Operation {
	return []Operation{
		// Sources and the library.
		operation((*Service).ListSources, Right{Scope: space.ScopeRead}),
		inProcess("OpenSource", Right{Scope: space.ScopeRead}),
		inProcess("OpenLibrary", Right{Scope: space.ScopeRead}),
		operation((*Service).DescribeSources, Right{Scope: space.ScopeRead}),
		operation((*Service).SyncSource, Right{Scope: space.ScopeWrite}),
		operation((*Service).SyncSources, Right{Scope: space.ScopeWrite}),
		operation((*Service).RebuildSnapshots, Right{Scope: space.ScopeWrite}),
		operation((*Service).ListPublished, Right{Role: space.Owner}),
		operation((*Service).PreviewSource, Right{Role: space.Owner}),
		operation((*Service).SuggestSourceID, Right{Role: space.Owner}),
		operation((*Service).PublishSource, Right{Role: space.Owner}),
		operation((*Service).UnpublishSource, Right{Role: space.Owner}),
		operation((*Service).PreviewSyncedSource, Right{Scope: space.ScopeWrite}),
		operation((*Service).AddSyncedSource, Right{Scope: space.ScopeWrite}),
		operation((*Service).ChangeSyncedSource, Right{Scope: space.ScopeWrite}),
		operation((*Service).RemoveSyncedSource, Right{Scope: space.ScopeWrite}),
		inProcess("UploadToSource", Right{Scope: space.ScopeWrite}),
		operation((*Service).RemoveFromSource, Right{Scope: space.ScopeWrite}),
		// Only the operator's configuration file performs these two operations.
		inProcess("ConfigureSources", Right{Admin: true}),
		inProcess("ConfigureSnapshot", Right{Admin: true}),
		operation((*Service).CancelSync, Right{Scope: space.ScopeWrite}),
		operation((*Service).ListSyncRuns, Right{Scope: space.ScopeRead}),
		operation((*Service).ListSyncs, Right{Scope: space.ScopeRead}),
		operation((*Service).ListSourceKinds, Right{Scope: space.ScopeRead}),
		operation((*Service).CountFailedSyncs, Right{Scope: space.ScopeRead}),
		inProcess("WaitForSync", Right{Scope: space.ScopeRead}),
		inProcess("OpenSyncedSource", Right{Scope: space.ScopeWrite}),

		// People, invitations and sessions.
		operation((*Service).ListUsers, Right{Admin: true}),
		operation((*Service).AddUser, Right{Admin: true}),
		operation((*Service).SetEmail, Right{Admin: true}),
		operation((*Service).SetAdmin, Right{Admin: true}),
		operation((*Service).RemoveUser, Right{Admin: true}),
		operation((*Service).CreateLoginLink, Right{Admin: true}),
		operation((*Service).EndSession, Right{Self: true}),
		operation((*Service).EndSessions, Right{Self: true}),
		operation((*Service).InviteToServer, Right{Admin: true}),
		operation((*Service).ListInvitations, Right{Admin: true}),
		operation((*Service).RevokeInvitation, Right{Self: true}),
		operation((*Service).AcceptInvitation, Right{Self: true}),
		operation((*Service).ListAudit, Right{Admin: true}),

		// Spaces and their members.
		operation((*Service).ListSpaces, Right{Admin: true}),
		operation((*Service).CreateSpace, Right{Self: true}),
		operation((*Service).RenameSpace, Right{Role: space.Owner}),
		operation((*Service).GiveSpace, Right{Role: space.Owner}),
		operation((*Service).InviteToSpace, Right{Role: space.Owner}),
		operation((*Service).ListSpaceInvitations, Right{Role: space.Owner}),
		operation((*Service).ListMembers, Right{Role: space.Reader}),
		operation((*Service).SetMember, Right{Role: space.Owner}),
		operation((*Service).RemoveMember, Right{Role: space.Owner}),
		operation((*Service).LeaveSpace, Right{Role: space.Reader}),

		// Keys, clients and grants.
		operation((*Service).CreateKey, Right{Role: space.Reader}),
		operation((*Service).ListKeys, Right{Self: true}),
		operation((*Service).RevokeKey, Right{Self: true}),
		operation((*Service).ListGrants, Right{Self: true}),
		operation((*Service).RevokeGrant, Right{Self: true}),
		operation((*Service).AddClient, Right{Admin: true}),
		operation((*Service).ListClients, Right{Admin: true}),
		operation((*Service).RemoveClient, Right{Admin: true}),

		// Files and their history.
		inProcess("OpenSpaces", Right{Self: true}),
		operation((*Service).WriteFiles, Right{Scope: space.ScopeWrite, Role: space.Editor}),
		operation((*Service).WriteFile, Right{Scope: space.ScopeWrite, Role: space.Editor}),
		operation((*Service).EditFile, Right{Scope: space.ScopeWrite, Role: space.Editor}),
		inProcess("ImportFolder", Right{Role: space.Editor}),
		operation((*Service).ListCommits, Right{Scope: space.ScopeRead, Role: space.Reader}),
		operation((*Service).ShowCommit, Right{Scope: space.ScopeRead, Role: space.Reader}),
		operation((*Service).Restore, Right{Scope: space.ScopeWrite, Role: space.Editor}),
		operation((*Service).Revert, Right{Scope: space.ScopeWrite, Role: space.Editor}),
		operation((*Service).UndoClient, Right{Scope: space.ScopeWrite, Role: space.Editor}),

		// Memory.
		operation((*Service).ListFacts, Right{Scope: space.ScopeRead, Role: space.Reader}),
		operation((*Service).AuditMemory, Right{Scope: space.ScopeRead, Role: space.Reader}),
		operation((*Service).Remember, Right{Scope: space.ScopeWrite, Role: space.Editor}),
		inProcess("ImportMemory", Right{Role: space.Editor}),
		operation((*Service).Forget, Right{Scope: space.ScopeWrite, Role: space.Editor}),
		operation((*Service).RepairFact, Right{Role: space.Editor}),

		// Reviews and pending files.
		operation((*Service).ListReviewDecisions, Right{Role: space.Reader}),
		operation((*Service).KeepReview, Right{Role: space.Editor}),
		operation((*Service).UndoReview, Right{Role: space.Editor}),
		operation((*Service).ListPendingFiles, Right{Role: space.Reader}),
		operation((*Service).AllowPendingSecrets, Right{Role: space.Editor}),
		operation((*Service).DiscardPendingFile, Right{Role: space.Reader}), // only the actor's own

		// Remotes, imports and secrets.
		operation((*Service).GetRemote, Right{Role: space.Reader}),
		operation((*Service).GetSpaceStatus, Right{Role: space.Reader}),
		operation((*Service).ListRemoteStates, Right{Scope: space.ScopeRead}),
		operation((*Service).SetRemote, Right{Role: space.Owner, Synced: true}),
		operation((*Service).RemoveRemote, Right{Role: space.Owner, Synced: true}),
		operation((*Service).SyncRemote, Right{Role: space.Editor, Synced: true}),
		inProcess("ImportSpace", Right{Role: space.Editor}),
		operation((*Service).StartImport, Right{Role: space.Editor}),
		operation((*Service).GetImport, Right{Role: space.Editor}),
		operation((*Service).FetchRemote, Right{Role: space.Editor}),
		operation((*Service).PurgeSecrets, Right{Role: space.Owner}),
		operation((*Service).AllowSecret, Right{Role: space.Editor}),
		operation((*Service).DisallowSecret, Right{Role: space.Editor}),
		operation((*Service).ListAllowedSecrets, Right{Role: space.Reader}),

		// Search and commands.
		operation((*Service).Search, Right{Scope: space.ScopeRead, Role: space.Reader}),
		inProcess("RunCommand", Right{Scope: space.ScopeWrite, Role: space.Editor}),
		inProcess("RunReadOnlyCommand", Right{Scope: space.ScopeRead, Role: space.Reader}),
		inProcess("RunLibraryCommand", Right{Scope: space.ScopeRead}),
		operation((*Service).Reindex, Right{Admin: true}),
		operation((*Service).RankPages, Right{Role: space.Reader}),

		// Administration and repair.
		operation((*Service).GetHealth, Right{Admin: true}),
		operation((*Service).ListUsage, Right{Admin: true}),
		operation((*Service).ListClientUsage, Right{Admin: true}),
		operation((*Service).GetAccess, Right{Admin: true}),
		operation((*Service).SetAccess, Right{Admin: true}),
		operation((*Service).PreviewDeletion, Right{Role: space.Owner}),
		operation((*Service).DeleteSpace, Right{Role: space.Owner}),
		operation((*Service).CheckSpaces, Right{Admin: true}),
		operation((*Service).RepairSpace, Right{Admin: true}),
	}
}

func operation[In, Out any](m Method[In, Out], r Right) Operation {
	name := m.Name()
	return Operation{Name: name, Right: r, call: func(ctx context.Context, s *Service, a Actor, raw json.RawMessage) (any, error) {
		var in In
		if err := json.Unmarshal(raw, &in); err != nil {
			return nil, fault.Wrap(err, fault.Invalid, "The input of %s is malformed. Are the command and the server of the same version?", name)
		}
		return m(s, ctx, a, in)
	}}
}

// inProcess returns an operation whose input or result is not JSON, such as a stream.
func inProcess(name string, r Right) Operation { return Operation{Name: name, Right: r} }

// None is an empty input or result.
type None struct{}
