package service_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/service/servicetest"
	"satchel/internal/space"
)

// Every method that takes an Actor is an operation with a right. Those with an input
// struct can be called by name.
func TestEveryOperationHasARight(t *testing.T) {
	var listed []string
	for _, o := range service.Operations() {
		listed = append(listed, o.Name)
		if o.Right == (service.Right{}) {
			t.Errorf("%s has no right", o.Name)
		}
	}
	methods := reflect.TypeFor[*service.Service]()
	for i := range methods.NumMethod() {
		m := methods.Method(i)
		if m.Type.NumIn() != 4 || m.Type.In(2) != reflect.TypeFor[service.Actor]() || m.Type.In(3).Kind() != reflect.Struct {
			continue
		}
		if !slices.Contains(listed, m.Name) {
			t.Errorf("%s is not in the list of operations", m.Name)
		}
	}
}

// Every operation refuses actors with too small a role, clients without the scope and the
// zero Actor. Strangers do not learn that the space exists.
func TestOperationsRefuseActorsWithoutTheRight(t *testing.T) {
	w := servicetest.New(t, time.Now)
	w.Write(map[string]string{"knowledge/a.md": "A"})
	w.Publish("notes", "Notes", "knowledge")
	member := func(name string, role space.Role) store.User {
		u, _, err := w.Accounts.CreateUser(t.Context(), store.Actor{Via: "test"}, store.NewUser{Name: name, Space: space.NewSpaceID()})
		if err == nil && role != "" {
			err = w.Accounts.AddMember(t.Context(), store.Actor{Via: "test"}, w.Space, u.ID, role)
		}
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	stranger, people := member("stranger", ""), map[space.Role]store.User{space.Reader: member("reader", space.Reader), space.Editor: member("editor", space.Editor)}
	in, err := json.Marshal(map[string]any{
		"id": "notes", "space": service.SpaceRef{ID: w.Space}, "dir": "knowledge", "source": space.Source{ID: "other", Dir: "knowledge"},
		"name": "other", "role": "reader", "scopes": []space.Scope{space.ScopeRead},
	})
	if err != nil {
		t.Fatal(err)
	}
	all := in
	for _, o := range service.Operations() {
		if !o.HasJSON() {
			continue
		}
		if in = all; o.Name == "Search" { // its source is a string
			in = fmt.Appendf(nil, `{"space":{"id":%q},"query":"x"}`, w.Space)
		}
		refused := func(who string, a service.Actor, want fault.Code) {
			t.Helper()
			if _, err := o.Call(t.Context(), w.Service, a, in); fault.CodeOf(err) != want {
				t.Errorf("%s by %s: %v, want %s", o.Name, who, err, want)
			}
		}
		refused("nobody", service.Actor{}, fault.Unauthenticated)
		grant := auth.Principal{User: w.Owner.ID, Space: w.Space, Scopes: []space.Scope{space.ScopeRead, space.ScopeWrite}}
		if o.Right.Scope == "" {
			refused("a client", service.Client(grant, "mcp"), fault.Forbidden)
		} else {
			grant.Scopes = slices.DeleteFunc(grant.Scopes, func(s space.Scope) bool { return s == o.Right.Scope })
			refused("a client without the scope", service.Client(grant, "mcp"), fault.Forbidden)
		}
		if o.Right.Admin {
			refused("a member who is no admin", service.Person(stranger), fault.Forbidden)
		}
		if o.Right.Role != "" {
			refused("a stranger", service.Person(stranger), fault.NotFound)
		}
		for role, u := range people {
			if !role.Includes(o.Right.Role) {
				refused("the "+string(role), service.Person(u), fault.Forbidden)
			}
		}
		if _, err := o.Call(t.Context(), w.Service, service.Operator(), json.RawMessage("{")); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%s with malformed input: %v", o.Name, err)
		}
	}
}
