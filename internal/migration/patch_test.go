// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// answer is the effect of one patch: it may change the objects, and returns the error of the API
// server, or nil to execute the patch.
type answer func(*fakeAPI) error

func answers(err error) answer { return func(*fakeAPI) error { return err } }

// always repeats an answer more often than any object is tried.
func always(a answer) []answer {
	script := make([]answer, 10*objectAttempts)
	for i := range script {
		script[i] = a
	}
	return script
}

// The object is written at v1beta1 in revision 101, which is the barrier.
func TestMigrateObject(t *testing.T) {
	const key, name = "ns/a000", "a000"
	group := testResource.GroupResource()
	tests := map[string]struct {
		prepare func(*fakeAPI)
		script  []answer
		onList  func(*fakeAPI, metav1.ListOptions) error
		want    outcome
		message string
		stop    string
		tries   int
	}{
		"rewritten":                        {want: rewritten, tries: 1},
		"already at the storage version":   {prepare: func(f *fakeAPI) { f.objects[key] = stored{uid: "u", revision: 101, version: "v1"} }, want: current, tries: 1},
		"newer than the barrier":           {prepare: func(f *fakeAPI) { f.write(key, "v1") }, want: current, tries: 1},
		"newer, but at the old version":    {prepare: func(f *fakeAPI) { f.write(key, "v1beta1") }, want: rewritten, tries: 1},
		"answer without a resourceVersion": {script: always(answers(errNoVersion)), want: failed, message: "no resourceVersion", tries: objectAttempts},

		"conflict, written after the barrier":  {script: []answer{func(f *fakeAPI) error { f.write(key, "v1"); return nil }}, want: current, tries: 2},
		"conflict, written at the old version": {script: []answer{func(f *fakeAPI) error { f.write(key, "v1beta1"); return nil }}, want: rewritten, tries: 2},
		"conflict, written not after it":       {script: []answer{answers(conflict(name))}, want: rewritten, tries: 2},
		"conflict, deleted":                    {script: []answer{func(f *fakeAPI) error { f.remove(key); return conflict(name) }}, want: gone, tries: 1},
		"conflict, deleted and created":        {script: []answer{func(f *fakeAPI) error { f.recreate(key, "v1"); return nil }}, want: current, tries: 2},
		"conflict, created not after it": {script: []answer{func(f *fakeAPI) error {
			f.objects[key] = stored{uid: "other", revision: 100, version: "v1beta1"}
			return nil
		}}, want: rewritten, tries: 2},
		"conflict, resourceVersion not a number": {script: []answer{answers(conflict(name))}, prepare: func(f *fakeAPI) { f.objects[key] = stored{uid: "u", version: "v1beta1"} }, want: rewritten, tries: 2},
		"conflict at the last try, then newer": {
			script: append(always(answers(conflict(name)))[:objectAttempts-1], func(f *fakeAPI) error { f.write(key, "v1"); return nil }), want: current, tries: objectAttempts,
		},
		"conflict at every try, newer every time": {script: always(func(f *fakeAPI) error { f.write(key, "v1"); return nil }), want: current, tries: objectAttempts},
		"conflict without a cause, newer":         {prepare: func(f *fakeAPI) { f.write(key, "v1beta1") }, script: always(answers(conflict(name))), want: failed, message: "has been modified", tries: objectAttempts},
		"conflict at the last try, then gone": {
			script: append(always(answers(conflict(name)))[:objectAttempts-1], func(f *fakeAPI) error { f.remove(key); return conflict(name) }), want: gone, tries: objectAttempts,
		},
		"conflict without end":   {script: always(answers(conflict(name))), want: failed, message: "has been modified", tries: objectAttempts},
		"conflict, read fails":   {script: []answer{answers(conflict(name))}, onList: refuse(unconvertible()), want: rewritten, tries: 2},
		"conflict, may not read": {script: []answer{answers(conflict(name))}, onList: refuse(withoutRight("list", "")), stop: "not allowed to list", tries: 1},

		"deleted":                         {script: []answer{func(f *fakeAPI) error { f.remove(key); return nil }}, want: gone, tries: 1},
		"not found, but it exists":        {script: []answer{answers(apierrors.NewNotFound(group, name))}, want: rewritten, tries: 2},
		"not found, but it always exists": {script: always(answers(apierrors.NewNotFound(group, name))), want: failed, message: "not found", tries: objectAttempts},
		"not found, endpoint gone":        {script: []answer{answers(apierrors.NewNotFound(group, name))}, onList: refuse(generic(http.StatusNotFound, "")), stop: "does not serve", tries: 1},
		"not found, another name":         {script: []answer{answers(apierrors.NewNotFound(group, "b"))}, stop: "cannot patch", tries: 1},
		"not found, no Status":            {script: []answer{answers(generic(http.StatusNotFound, name))}, stop: "cannot patch", tries: 1},

		"cannot convert":             {script: always(answers(unconvertible())), want: failed, message: "port is missing", tries: objectAttempts},
		"converter recovers":         {script: always(answers(unconvertible()))[:objectAttempts-1], want: rewritten, tries: objectAttempts},
		"forbidden":                  {script: always(answers(forbidden(name))), want: failed, message: "denied by policy", tries: 1},
		"invalid":                    {script: always(answers(invalid(name))), want: failed, message: "is invalid", tries: 1},
		"too large":                  {script: always(answers(tooLarge())), want: failed, message: "limit is 3145728", tries: 1},
		"right lost":                 {script: always(answers(withoutRight("patch", name))), stop: "not allowed to patch crontabs.example.com ns/a000", tries: 1},
		"unauthorized":               {script: always(answers(unauthorized())), stop: "token expired", tries: 1},
		"overloaded":                 {script: []answer{answers(overloaded(2)), answers(overloaded(0))}, want: rewritten, tries: 3},
		"unavailable":                {script: []answer{answers(unavailable())}, want: rewritten, tries: 2},
		"timeout after the write":    {script: []answer{func(f *fakeAPI) error { f.write(key, "v1"); return gatewayTimeout() }}, want: current, tries: 3},
		"connection lost":            {script: []answer{answers(unreachable())}, want: rewritten, tries: 2},
		"only this object times out": {script: always(answers(gatewayTimeout())), want: failed, message: "did not complete", tries: objectAttempts + 1},
		"server unavailable":         {script: always(answers(unreachable())), onList: refuse(unreachable()), stop: "connection refused", tries: 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			api := newFakeAPI(1)
			if tt.prepare != nil {
				tt.prepare(api)
			}
			listed := api.metadata(key)
			tries := 0
			api.onPatch = func(string) error {
				tries++
				if tries > len(tt.script) {
					return nil
				}
				return tt.script[tries-1](api)
			}
			if tt.onList != nil {
				api.onList = func(o metav1.ListOptions) error { return tt.onList(api, o) }
			}
			got, err := prepared(newTestEngine(api, &fakeStore{})).migrateObject(t.Context(), &listed, "101")
			expect.Equal(t, "tries", tt.tries, tries)
			if tt.stop != "" {
				wantError(t, err, tt.stop)
				return
			}
			expect.NoError(t, err)
			expect.Equal(t, "outcome of "+got.object, tt.want, got.outcome)
			expect.Equal(t, "object", key, got.object)
			if tt.message != "" {
				wantError(t, errors.New(got.message), tt.message)
			}
			if got.outcome == rewritten && api.objects[key].version != "v1" {
				t.Error("the object counts as rewritten but is not stored at v1")
			}
		})
	}
}

func prepared(engine *Engine) *Engine {
	engine.prepare()
	return engine
}

func refuse(err error) func(*fakeAPI, metav1.ListOptions) error {
	return func(*fakeAPI, metav1.ListOptions) error { return err }
}

type patchFunc func(ctx context.Context, patch Patch) (*metav1.PartialObjectMetadata, error)

func (f patchFunc) Patch(ctx context.Context, patch Patch) (*metav1.PartialObjectMetadata, error) {
	return f(ctx, patch)
}

func TestPatchAnswerMustHaveAResourceVersion(t *testing.T) {
	engine := &Engine{Patcher: patchFunc(func(context.Context, Patch) (*metav1.PartialObjectMetadata, error) {
		return &metav1.PartialObjectMetadata{}, nil
	})}
	_, err := engine.patch(t.Context(), Patch{})
	wantError(t, err, errNoVersion.Error())
}

func TestPatchSendsOnlyTheResourceVersion(t *testing.T) {
	var sent map[string]any
	engine := &Engine{Patcher: patchFunc(func(_ context.Context, patch Patch) (*metav1.PartialObjectMetadata, error) {
		expect.Equal(t, "patched", "ns/a", patch.Namespace+"/"+patch.Name)
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "8"}}, json.Unmarshal(patch.Body, &sent)
	})}
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "u", ResourceVersion: "7"}}
	_, err := engine.patch(t.Context(), patchOf(object))
	expect.NoError(t, err)
	want := map[string]any{"metadata": map[string]any{"resourceVersion": "7"}}
	expect.Equal(t, "patch", want, sent)
}
