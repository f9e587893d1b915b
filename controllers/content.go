// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// contentAnnotation holds a hash of what was applied, so that a field which is
// no longer wanted is noticed although the rest still matches.
const contentAnnotation = "conversion-operator.io/content"

func toUnstructured(object runtime.ApplyConfiguration) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	return &unstructured.Unstructured{Object: content}, nil
}

func contentHash(object *unstructured.Unstructured) (string, error) {
	text, err := json.Marshal(object.Object)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), nil
}

// contains reports whether all that is wanted is there. It may say no where the
// API server would see no difference, a quantity written in another way for
// example; applying then changes nothing.
func contains(there, wanted any) bool {
	switch wanted := wanted.(type) {
	case map[string]any:
		members, ok := there.(map[string]any)
		if !ok {
			return false
		}
		for key, value := range wanted {
			if !contains(members[key], value) {
				return false
			}
		}
		return true
	case []any:
		elements, ok := there.([]any)
		if !ok || len(elements) != len(wanted) {
			return false
		}
		for i := range wanted {
			if !contains(elements[i], wanted[i]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(there, wanted)
}
