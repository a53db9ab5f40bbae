package mcp

import (
	"context"
	"encoding/json"
	"net/http"

	protocol "github.com/mark3labs/mcp-go/mcp"

	"satchel/internal/fault"
)

// subscribe answers resources/subscribe, which protocol version 2026-07-28 replaced with
// subscriptions/listen.
func subscribe(ctx context.Context, rq *request) (any, *rpcError, bool) {
	if rq.modern {
		return nil, rq.unknownMethod(), true
	}
	uri, e := rq.uri()
	if e != nil {
		return nil, e, true
	}
	p, err := rq.s.o.Tools.ResourcePath(ctx, rq.caller(), uri)
	if err != nil {
		return nil, rq.resourceFailure(uri, err), true
	}
	if most := rq.s.o.MaxSubscriptions; !rq.session.subscriber.subscribe(uri, p, most) {
		rq.outcome = string(fault.Limited)
		return nil, errorf(codeServer, "A session can subscribe to at most %d resources. Unsubscribe from one first.", most), true
	}
	return struct{}{}, nil, true
}

func unsubscribe(_ context.Context, rq *request) (any, *rpcError, bool) {
	if rq.modern {
		return nil, rq.unknownMethod(), true
	}
	uri, e := rq.uri()
	if e != nil {
		return nil, e, true
	}
	rq.session.subscriber.unsubscribe(uri)
	return struct{}{}, nil, true
}

func listenMembers() []string {
	return []string{"toolsListChanged", "promptsListChanged", "resourcesListChanged", "resourceSubscriptions"}
}

// listenTo answers subscriptions/listen. It sends the acknowledgement, which names the
// notifications that the server will send, then the notifications, and the result when the stream
// ends. A client's list of tools never changes, so toolsListChanged is not acknowledged.
func listenTo(ctx context.Context, rq *request) (any, *rpcError, bool) {
	if !rq.modern {
		return nil, rq.unknownMethod(), true
	}
	if !rq.out.events {
		return nil, errorf(protocol.INVALID_REQUEST, "A listening client must accept text/event-stream.").withStatus(http.StatusNotAcceptable), true
	}
	var asked, granted protocol.SubscriptionFilter
	if raw, ok := rq.m.params["notifications"]; ok {
		if _, err := readObject(raw, listenMembers()); err != nil || json.Unmarshal(raw, &asked) != nil {
			return nil, errorf(protocol.INVALID_PARAMS, "The notifications to listen for must be an object with the members of the specification."), true
		}
	}
	w := newSubscriber(rq.p.Space)
	if asked.PromptsListChanged {
		granted.PromptsListChanged = true
		w.wanted[promptListChanged()] = ""
	}
	if asked.ResourcesListChanged {
		granted.ResourcesListChanged = true
		w.wanted[resourceListChanged()] = ""
	}
	if most := rq.s.o.MaxSubscriptions; len(asked.ResourceSubscriptions) > most {
		rq.outcome = string(fault.Limited)
		return nil, errorf(protocol.INVALID_PARAMS, "A stream can subscribe to at most %d resources. Ask for fewer.", most), true
	}
	for _, uri := range asked.ResourceSubscriptions {
		p, err := rq.s.o.Tools.ResourcePath(ctx, rq.caller(), uri)
		switch fault.CodeOf(err) {
		case "":
			w.subscribe(uri, p, rq.s.o.MaxSubscriptions)
			granted.ResourceSubscriptions = append(granted.ResourceSubscriptions, uri)
		case fault.NotFound, fault.Invalid: // the acknowledgement leaves the URI out
		default:
			return nil, rq.failure(err, protocol.INVALID_PARAMS), true
		}
	}
	rq.s.subscribers.add(w)
	defer rq.s.subscribers.remove(w)
	meta := map[string]any{protocol.MetaKeySubscriptionID: rq.m.id}
	rq.out.notify(protocol.MethodNotificationSubscriptionsAcknowledged, map[string]any{"_meta": meta, "notifications": granted})
	if !granted.IsEmpty() {
		rq.out.keepAlive(rq.s.o.KeepAlive)
		rq.m.raw, rq.m.params, rq.m.meta = nil, nil, nil // a stream can stay open for days
		rq.s.deliver(ctx, rq.http, rq.p, w, rq.out, rq.m.id)
	}
	return rq.base(map[string]any{protocol.MetaKeySubscriptionID: rq.m.id}), nil, true
}
