// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import "testing"

func TestContains(t *testing.T) {
	there := map[string]any{
		"spec": map[string]any{
			"replicas": int64(2), "defaulted": "x",
			"ports": []any{map[string]any{"port": int64(443), "nodePort": int64(0)}},
		},
		"status": map[string]any{},
	}
	cases := map[string]struct {
		wanted map[string]any
		want   bool
	}{
		"a part":                {map[string]any{"spec": map[string]any{"replicas": int64(2)}}, true},
		"a part of an element":  {map[string]any{"spec": map[string]any{"ports": []any{map[string]any{"port": int64(443)}}}}, true},
		"another value":         {map[string]any{"spec": map[string]any{"replicas": int64(3)}}, false},
		"another element":       {map[string]any{"spec": map[string]any{"ports": []any{map[string]any{"port": int64(80)}}}}, false},
		"fewer elements":        {map[string]any{"spec": map[string]any{"ports": []any{}}}, false},
		"a member more":         {map[string]any{"spec": map[string]any{"paused": true}}, false},
		"a map where text is":   {map[string]any{"spec": map[string]any{"defaulted": map[string]any{}}}, false},
		"a list where a map is": {map[string]any{"spec": []any{}}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := contains(there, c.wanted); got != c.want {
				t.Errorf("got %t, want %t", got, c.want)
			}
		})
	}
}
