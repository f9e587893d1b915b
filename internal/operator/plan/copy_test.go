// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/forecast"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
)

// begun are the worlds at which many tests begin, by name.
var begun sync.Map

// from returns a copy of a world at which many tests begin, and which is played once.
func from(t *testing.T, name string, play func(*testing.T) *world) *world {
	t.Helper()
	there, known := begun.Load(name)
	if !known {
		there, _ = begun.LoadOrStore(name, play(t))
	}
	return there.(*world).copied(t)
}

// copied returns a world that is the same, and changes alone.
func (w *world) copied(t *testing.T) *world {
	t.Helper()
	c := *w
	c.t, c.log, c.events = t, strings.Builder{}, strings.Builder{}
	c.log.WriteString(w.log.String())
	c.events.WriteString(w.events.String())
	state := *w.observed
	state.Rules = compile.Result{} // no test changes what is in rulesets
	state = deepCopy(reflect.ValueOf(state)).Interface().(observed.Cluster)
	state.Rules = w.observed.Rules
	c.observed, c.State, c.Answer, c.Tell = &state, &state, c.answer, c.tell
	c.held, c.Owners = *w.held.Clone(), maps.Clone(w.Owners)
	c.Left, c.rests = slices.Clone(w.Left), slices.Clone(w.rests)
	if w.watch != nil {
		watch := *w.watch
		watch.requested = maps.Clone(watch.requested)
		c.watch, c.Fleets = &watch, map[string]*forecast.Fleet{}
	}
	for name, there := range w.Fleets {
		other := *there
		other.Certificate = there.Certificate.DeepCopy()
		c.Fleets[name] = &other
	}
	return &c
}

// deepCopy copies what exported fields refer to.
func deepCopy(value reflect.Value) reflect.Value {
	c := reflect.New(value.Type()).Elem()
	c.Set(value)
	switch kind := value.Kind(); {
	case kind == reflect.Struct:
		for i := range c.NumField() {
			if c.Field(i).CanSet() {
				c.Field(i).Set(deepCopy(value.Field(i)))
			}
		}
	case kind == reflect.Array || kind == reflect.Slice && !value.IsNil():
		if kind == reflect.Slice {
			c.Set(reflect.MakeSlice(value.Type(), value.Len(), value.Len()))
		}
		for i := range value.Len() {
			c.Index(i).Set(deepCopy(value.Index(i)))
		}
	case kind == reflect.Map && !value.IsNil():
		c.Set(reflect.MakeMapWithSize(value.Type(), value.Len()))
		for key, element := range value.Seq2() {
			c.SetMapIndex(key, deepCopy(element))
		}
	case kind == reflect.Pointer && !value.IsNil():
		c.Set(reflect.New(value.Type().Elem()))
		c.Elem().Set(deepCopy(value.Elem()))
	case kind == reflect.Interface && !value.IsNil():
		c.Set(deepCopy(value.Elem()))
	}
	return c
}
