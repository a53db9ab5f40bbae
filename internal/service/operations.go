package service

import (
	"context"
	"encoding/json"
	"reflect"
	"runtime"
	"strings"

	"satchel/internal/fault"
)

// Method is an operation as a method expression of Service, such as
// (*Service).PublishSource.
type Method[In, Out any] func(*Service, context.Context, Actor, In) (Out, error)

// Name returns the method's name, such as "PublishSource".
func (m Method[In, Out]) Name() string {
	full := runtime.FuncForPC(reflect.ValueOf(m).Pointer()).Name()
	return full[strings.LastIndexByte(full, '.')+1:]
}

// Operation is an operation by its name, for fronts that serve all of them.
type Operation struct {
	Name  string
	Right Right
	call  func(ctx context.Context, s *Service, a Actor, in json.RawMessage) (any, error)
}

// Call performs the operation with an input in JSON.
func (o Operation) Call(ctx context.Context, s *Service, a Actor, in json.RawMessage) (any, error) {
	return o.call(ctx, s, a, in)
}

// Operations lists every operation that has inputs and results in JSON.
func Operations() []Operation {
	return []Operation{
		operation((*Service).ListSources),
		operation((*Service).ListPublished),
		operation((*Service).PreviewSource),
		operation((*Service).SuggestSourceID),
		operation((*Service).PublishSource),
		operation((*Service).UnpublishSource),
		operation((*Service).SyncSource),
	}
}

func operation[In, Out any](m Method[In, Out]) Operation {
	name := m.Name()
	right, _ := rights(name)
	return Operation{Name: name, Right: right, call: func(ctx context.Context, s *Service, a Actor, raw json.RawMessage) (any, error) {
		var in In
		if err := json.Unmarshal(raw, &in); err != nil {
			return nil, fault.Wrap(err, fault.Invalid, "The input of %s is malformed. Are the command and the server of the same version?", name)
		}
		return m(s, ctx, a, in)
	}}
}

// None is the result of an operation that returns nothing.
type None struct{}
