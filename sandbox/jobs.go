package sandbox

import (
	"context"
	"slices"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/sandbox/agent"
)

// JobOwner is whose jobs are meant. Where ReadOnly is set they are those of a
// caller who can only read: what others run is none of its business, as inside
// the sandbox, where it can neither read their output nor signal them.
type JobOwner struct {
	User     space.UserID
	Space    space.SpaceID
	ReadOnly bool
}

func (o JobOwner) key() key { return key{o.User, o.Space} }

// Jobs lists the background jobs of a user's sandbox that o may know of; none
// where it does not run. It never starts one.
func (p *Pool) Jobs(ctx context.Context, o JobOwner) ([]agent.Job, error) {
	b := p.running(o.key())
	if b == nil {
		return nil, nil
	}
	defer b.release()
	list, err := b.agent.Jobs(ctx)
	if o.ReadOnly {
		list = slices.DeleteFunc(list, func(j agent.Job) bool { return !j.ReadOnly })
	}
	return list, err
}

// KillJob sends a signal ("SIGTERM") to all processes of a job. It returns
// fault.NotFound if the sandbox does not run, and where o may not know of
// the job.
func (p *Pool) KillJob(ctx context.Context, o JobOwner, jobID, signal string) error {
	b := p.running(o.key())
	if b == nil {
		return fault.New(fault.NotFound, "There is no such job: the sandbox does not run.")
	}
	defer b.release()
	if o.ReadOnly {
		list, err := b.agent.Jobs(ctx)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(list, func(j agent.Job) bool { return j.ID == jobID && j.ReadOnly }) {
			return fault.New(fault.NotFound, "There is no such job.")
		}
	}
	return b.agent.Kill(ctx, jobID, signal)
}
