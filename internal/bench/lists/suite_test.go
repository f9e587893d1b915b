// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lists

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/conversion-operator/conversion-operator/internal/bench/converters"
)

func TestCounts(t *testing.T) {
	o := Options{Counts: []int{5000, 100, 1000}, Most: 100}
	for size, want := range map[int][]int{1: {100, 1000, 5000}, 10: {100, 1000, 5000}, 100: {100, 1000}, 2000: {}} {
		if diff := cmp.Diff(want, o.counts(size)); diff != "" {
			t.Errorf("objects of %d KB (-want +got):\n%s", size, diff)
		}
	}
}

func TestValidate(t *testing.T) {
	for _, test := range []struct {
		options Options
		valid   bool
	}{
		{Options{Sizes: []int{1}, Counts: []int{1}, Most: 1}, true},
		{Options{Sizes: []int{0}, Counts: []int{1}, Most: 1}, false},
		{Options{Sizes: []int{1}, Counts: []int{-1}, Most: 1}, false},
		{Options{Sizes: []int{1}, Counts: []int{1}}, false},
		{Options{Sizes: []int{1}, Most: 1}, false},
		{Options{Counts: []int{1}, Most: 1}, false},
	} {
		if err := test.options.validate(); (err == nil) != test.valid {
			t.Errorf("%+v: error %v, valid %t", test.options, err, test.valid)
		}
	}
}

// TestAdd: what a conversion adds is the difference between the fastest lists.
func TestAdd(t *testing.T) {
	s := &suite{}
	s.add("case", 10, []sample{
		{none, []time.Duration{12 * time.Millisecond, 10 * time.Millisecond}, 10 << 10},
		{"ours", []time.Duration{15 * time.Millisecond, 14 * time.Millisecond}, 20 << 10},
		{typed, []time.Duration{18 * time.Millisecond, 50 * time.Millisecond}, 20 << 10},
	})
	got := map[string]float64{}
	for _, row := range s.rows {
		got[row.Subject+": "+row.Unit] = row.Value
	}
	want := map[string]float64{
		none + ": KB/object": 1, none + ": ms": 10, none + ": ms, median": 10, none + ": times strategy None": 1,
		"ours: KB/object": 2, "ours: ms": 14, "ours: ms, median": 14, "ours: times strategy None": 1.4,
		"ours: ms added": 4, "ours: us added/object": 400, "ours: controller-runtime adds times as much": 2,
		typed + ": KB/object": 2, typed + ": ms": 18, typed + ": ms, median": 18, typed + ": times strategy None": 1.8,
		typed + ": ms added": 8, typed + ": us added/object": 800, typed + ": controller-runtime adds times as much": 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

// TestNothingAdded: a ratio to nothing could not be written to a file.
func TestNothingAdded(t *testing.T) {
	s := &suite{}
	ten := []time.Duration{10}
	s.add("case", 1, []sample{{none, ten, 1}, {"ours", ten, 1}, {typed, ten, 1}})
	if _, err := json.Marshal(s.rows); err != nil {
		t.Error(err)
	}
}

func TestCheck(t *testing.T) {
	const converted, stored = `{"spec":{"runtime":{"image":"a"}}}`, `{"spec":{"image":"a"}}`
	for _, test := range []struct {
		items     string
		converted bool
		valid     bool
	}{
		{converted + "," + converted, true, true},
		{stored + "," + stored, false, true},
		{converted + "," + stored, true, false},
		{stored + "," + converted, false, false},
		{converted, true, false},
		{"?", true, false},
	} {
		err := check(fmt.Appendf(nil, `{"items":[%s]}`, test.items), 2, test.converted)
		if (err == nil) != test.valid {
			t.Errorf("%s, converted %t: error %v, valid %t", test.items, test.converted, err, test.valid)
		}
	}
}

// TestObject: objects have their size, and a name each.
func TestObject(t *testing.T) {
	names := map[string]bool{}
	for number, size := range []int{2 << 10, 10 << 10, 100 << 10} {
		object, err := converters.Object("lists.example.com", number, size)
		if err != nil {
			t.Fatal(err)
		}
		text, err := object.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		// API servers add metadata, so what is created is smaller.
		if got := len(text); got < size/2 || got > size {
			t.Errorf("an object of %d bytes has %d", size, got)
		}
		if object.GroupVersionKind().String() != "lists.example.com/v1, Kind=Task" || object.GetUID() != "" {
			t.Errorf("%s has uid %q", object.GroupVersionKind(), object.GetUID())
		}
		names[object.GetName()] = true
	}
	if len(names) != 3 {
		t.Errorf("the names are %v", names)
	}
}
