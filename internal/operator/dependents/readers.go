// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package dependents

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// event is what is read of an event in an audit log, in the format audit.k8s.io/v1.
type event struct {
	Stage                    string    `json:"stage"`
	Verb                     string    `json:"verb"`
	UserAgent                string    `json:"userAgent"`
	RequestReceivedTimestamp time.Time `json:"requestReceivedTimestamp"`
	User                     struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef *struct {
		APIGroup, APIVersion, Resource, Namespace, Name string
	} `json:"objectRef"`
}

type reader struct{ user, agent, version string }

type requested struct {
	requests int
	last     time.Time
	object   Object
	verbs    map[string]bool
}

// Readers returns the clients that requested versions which go, by an audit log of an API server:
// one event a line. It returns the number of requests by others if there are too many clients.
func (t *Target) Readers(log io.Reader) (clients []Dependent, others int, err error) {
	found := map[reader]*requested{}
	decoder := json.NewDecoder(log)
	for n := 1; ; n++ {
		var e event
		err := decoder.Decode(&e)
		if errors.Is(err, io.EOF) {
			return t.ofReaders(found), others, nil
		}
		if err != nil {
			return nil, 0, fmt.Errorf("read event %d of the audit log: %w", n, err)
		}
		if e.ObjectRef == nil || e.ObjectRef.APIGroup != t.Group || e.ObjectRef.Resource != t.Plural || !t.Goes(e.ObjectRef.APIVersion) {
			continue
		}
		// A watch has not completed while it runs.
		if e.Stage != "ResponseComplete" && (e.Stage != "ResponseStarted" || e.Verb != "watch") {
			continue
		}
		if !t.add(found, &e) {
			others++
		}
	}
}

// add counts a request, unless it is by one client too many.
func (t *Target) add(found map[reader]*requested, e *event) bool {
	key := reader{e.User.Username, e.UserAgent, e.ObjectRef.APIVersion}
	client := found[key]
	if client == nil {
		if len(found) == mostManagers {
			return false
		}
		client = &requested{verbs: map[string]bool{}}
		found[key] = client
	}
	if e.Verb != "watch" || e.Stage != "ResponseComplete" || !client.verbs["watch"] {
		client.requests++
	}
	client.verbs[e.Verb] = true
	if e.RequestReceivedTimestamp.After(client.last) {
		client.last = e.RequestReceivedTimestamp
	}
	if e.ObjectRef.Name != "" {
		client.object = Object{Kind: t.Kind, Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name}
	}
	return true
}

func (t *Target) ofReaders(found map[reader]*requested) []Dependent {
	var all []Dependent
	for key, client := range found {
		all = append(all, Dependent{
			Dependency: Reader, Impact: Breaks, Object: client.object, Client: fmt.Sprintf("%s (%s)", key.user, key.agent), Version: key.version,
			Count: client.requests, Last: client.last.UTC().Format(time.RFC3339),
			Effect: "its requests fail with 404 Not Found once the version is not served",
			Cure:   fmt.Sprintf("move the client to %s", t.To),
		})
	}
	Sort(all)
	return all
}
