// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package etcd reads and writes the stored data of test API servers directly, without the API
// server. It speaks the JSON form of etcd's API, which needs no library:
// https://etcd.io/docs/v3.6/dev-guide/api_grpc_gateway/.
package etcd

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
)

// Client is the URL of an etcd without TLS.
type Client string

// Entry is a key, its value, and the revision in which the value was written.
type Entry struct {
	Key, Value  []byte
	ModRevision int64 `json:"mod_revision,string"`
}

// pageSize is the number of entries per response: a benchmark may store 200,000 objects.
var pageSize int64 = 10_000

// Get reads one entry. It returns an error if the key does not exist.
func (c Client) Get(ctx context.Context, key string) (Entry, error) {
	answer, err := c.read(ctx, request{Key: []byte(key)})
	if err != nil {
		return Entry{}, err
	}
	if len(answer.Kvs) != 1 {
		return Entry{}, fmt.Errorf("etcd has nothing at %s", key)
	}
	return answer.Kvs[0], nil
}

// List reads all entries whose keys begin with prefix, sorted by key, and the revision of etcd.
func (c Client) List(ctx context.Context, prefix string) (entries []Entry, revision int64, err error) {
	r := request{Key: []byte(prefix), RangeEnd: []byte(prefix), Limit: pageSize}
	r.RangeEnd[len(prefix)-1]++
	for {
		answer, err := c.read(ctx, r)
		if err != nil {
			return nil, 0, err
		}
		entries = append(entries, answer.Kvs...)
		if r.Revision == 0 {
			r.Revision = answer.Header.Revision
		}
		if !answer.More {
			return entries, r.Revision, nil
		}
		r.Key = slices.Concat(entries[len(entries)-1].Key, []byte{0})
	}
}

// Put writes a value.
func (c Client) Put(ctx context.Context, key, value string) error {
	return c.post(ctx, "kv/put", map[string][]byte{"key": []byte(key), "value": []byte(value)}, nil)
}

// Delete deletes a key.
func (c Client) Delete(ctx context.Context, key string) error {
	return c.post(ctx, "kv/deleterange", map[string][]byte{"key": []byte(key)}, nil)
}

// Compact makes etcd forget all revisions before this one.
func (c Client) Compact(ctx context.Context, revision int64) error {
	return c.post(ctx, "kv/compaction", map[string]int64{"revision": revision}, nil)
}

// SetFull raises or clears the NOSPACE alarm, under which etcd refuses writes.
func (c Client) SetFull(ctx context.Context, full bool) error {
	is := answer{}
	if err := c.post(ctx, "maintenance/status", struct{}{}, &is); err != nil {
		return err
	}
	action := "DEACTIVATE"
	if full {
		action = "ACTIVATE"
	}
	return c.post(ctx, "maintenance/alarm", map[string]string{
		"action": action, "alarm": "NOSPACE", "memberID": is.Header.MemberID}, nil)
}

type request struct {
	Key      []byte `json:"key"`
	RangeEnd []byte `json:"range_end,omitempty"`
	Limit    int64  `json:"limit,omitempty"`
	Revision int64  `json:"revision,omitempty"`
}

// answer has the members of etcd's responses that are read here. 64-bit numbers are strings in
// them.
type answer struct {
	Header struct {
		MemberID string `json:"member_id"`
		Revision int64  `json:",string"`
	}
	Kvs  []Entry
	More bool
}

func (c Client) read(ctx context.Context, r request) (answer, error) {
	is := answer{}
	err := c.post(ctx, "kv/range", r, &is)
	return is, err
}

// post calls a method of etcd, and decodes the response into into, unless that is nil.
func (c Client) post(ctx context.Context, method string, question, into any) error {
	text, err := json.Marshal(question)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, string(c)+"/v3/"+method, bytes.NewReader(text))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err = io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("read the answer of etcd to %s: %w", method, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("etcd answers %s to %s: %s", response.Status, method, text)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}
