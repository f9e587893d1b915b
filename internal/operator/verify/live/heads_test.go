// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

var cronTabs = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "crontabs"}

func TestHeads(t *testing.T) {
	const at = "/apis/example.com/v1/crontabs?"
	item := func(name string) string {
		return `{"metadata":{"name":"` + name + `","namespace":"n","creationTimestamp":"2026-01-01T00:00:00Z","managedFields":[{"apiVersion":"example.com/v1","time":"2026-01-02T00:00:00Z","fieldsV1":{"f:a":{}}}]}}`
	}
	cluster, _ := server(t, map[string]string{
		at + "limit=10":            `200 {"metadata":{"continue":"x"},"items":[` + item("a") + `]}`,
		at + "continue=x&limit=40": expired + `,"metadata":{"continue":"y"}}`,
		at + "continue=y&limit=40": `200 {"metadata":{},"items":[` + item("b") + `,` + item("c") + `]}`,
	})
	var got []string
	err := cluster.Heads(t.Context(), cronTabs, func(head Head) bool {
		got = append(got, head.String()+" "+head.Writes[0].APIVersion)
		return head.Name != "b"
	})
	expect.NoError(t, err)
	expect.Equal(t, "heads", []string{"n/a example.com/v1", "n/b example.com/v1"}, got)
	broken, _ := server(t, nil)
	if err := broken.Heads(t.Context(), cronTabs, func(Head) bool { return true }); err == nil {
		t.Error("no error for a missing list")
	}
}

func TestObject(t *testing.T) {
	cluster, _ := server(t, map[string]string{
		"/apis/example.com/v1/namespaces/n/crontabs/a": `200 {"metadata":{"name":"a","namespace":"n"},"big":9007199254740993}`,
		"/apis/example.com/v1/crontabs/c":              `403 {"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"not for you","code":403}`,
	})
	object, found, err := cluster.Object(t.Context(), cronTabs, "n", "a")
	if err != nil || !found || object.String() != "n/a" || string(object.JSON) != `{"metadata":{"name":"a","namespace":"n"},"big":9007199254740993}` {
		t.Errorf("object %s, found %t, error %v", object.JSON, found, err)
	}
	if _, found, err := cluster.Object(t.Context(), cronTabs, "n", "b"); found || err != nil {
		t.Errorf("an object that is gone: found %t, error %v", found, err)
	}
	if _, _, err := cluster.Object(t.Context(), cronTabs, "", "c"); err == nil {
		t.Error("no error for a forbidden object")
	}
}

// day returns a day of January 2026.
func day(n int) metav1.Time { return metav1.NewTime(time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC)) }

func TestBetween(t *testing.T) {
	written := func(times ...int) Head {
		head := Head{Created: day(1)}
		for _, n := range times {
			head.Writes = append(head.Writes, Write{"example.com/v1", day(n)})
		}
		return head
	}
	for name, test := range map[string]struct {
		head Head
		want bool
	}{
		"before":               {written(2), false},
		"within":               {written(2, 4), true},
		"at the start":         {written(3), true},
		"at the end":           {written(5), true},
		"after":                {written(6), false},
		"created before":       {Head{Created: day(1)}, false},
		"created within":       {Head{Created: day(4)}, true},
		"created, and written": {Head{Created: day(4), Writes: written(6).Writes}, false},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, "between", test.want, test.head.Between(day(3).Time, day(5).Time, func(Write) bool { return true }))
			expect.Equal(t, "without a selected write", false, test.head.Between(day(3).Time, day(5).Time, func(Write) bool { return false }))
		})
	}
}

func TestChoose(t *testing.T) {
	head := func(namespace, name string, created int, versions ...string) Head {
		head := Head{Namespace: namespace, Name: name, Created: day(created)}
		for _, version := range versions {
			head.Writes = append(head.Writes, Write{version, day(created)})
		}
		return head
	}
	const old, recent, foreign = "example.com/v1beta1", "example.com/v1", "example.org/v1beta1"
	stored := []string{"v1beta1", "v1"}
	for name, test := range map[string]struct {
		heads []Head
		limit int
		want  []string
	}{
		"nothing": {nil, 3, nil},
		"fewer than the limit": {[]Head{head("a", "x", 1, recent), head("a", "y", 2, recent)}, 5,
			[]string{"a/x v1", "a/y v1"}},
		"the oldest, then the newest": {[]Head{head("a", "x", 2, recent), head("a", "y", 3, recent), head("a", "z", 1, recent)}, 2,
			[]string{"a/z v1", "a/y v1"}},
		"some of each version": {[]Head{head("a", "x", 1, recent), head("a", "y", 2, recent), head("a", "z", 3, old)}, 2,
			[]string{"a/x v1", "a/z v1beta1"}},
		"some of each namespace": {[]Head{head("a", "x", 1, recent), head("a", "y", 2, recent), head("b", "z", 3, recent)}, 2,
			[]string{"a/x v1", "b/z v1"}},
		"at each version in which it may be stored": {[]Head{head("a", "x", 1, old, recent)}, 5,
			[]string{"a/x v1", "a/x v1beta1"}},
		"without managedFields at the fallback": {[]Head{head("a", "x", 1), head("a", "y", 2, foreign), head("a", "z", 3, "example.com/v7")}, 5,
			[]string{"a/x v1", "a/z v1", "a/y v1"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, choice := range Choose(test.heads, "example.com", stored, "v1", test.limit) {
				got = append(got, choice.Head.String()+" "+choice.Version)
			}
			expect.Equal(t, "choice", test.want, got)
		})
	}
}
