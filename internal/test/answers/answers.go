// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package answers has the answers of real API servers to requests that fail, of each supported minor
// version of Kubernetes. The operator can learn some causes only from the texts of these answers.
// Each package that reads such texts has a test that all answers of all versions are understood.
//
// TestAnswers makes the requests again, and compares. To record another version, run it with -update
// and KUBERNETES_VERSION.
package answers

import (
	"embed"
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

const (
	// Group is the group of the objects.
	Group = "answers.example.com"
	// Object is the name of the object that requests patch, in the namespace default.
	Object = "local"
)

// Requests of a case. Objects are stored at v1beta1, and v1 is the storage version.
const (
	// Patch is a merge patch at v1, as migrations send it.
	Patch = "patch"
	// Create is a dry run at v1beta1, as probes send it.
	Create = "create"
	// List is at v1.
	List = "list"
)

// Answer is what an API server answered.
type Answer struct {
	// Minor is the version of Kubernetes, such as v1.32.
	Minor string
	// Case is why the request failed, and Request what was requested.
	Case, Request string
	// Status is the answer. Ports, times and identifiers in it are replaced.
	Status metav1.Status
}

// Error returns the answer as clients return it.
func (a Answer) Error() error { return &apierrors.StatusError{ErrStatus: a.Status} }

func (a Answer) String() string { return a.Minor + " " + a.Case + ": " + a.Request }

//go:embed testdata/*.json
var files embed.FS

// recorded are the answers of one version, by case and request.
type recorded map[string]map[string]metav1.Status

// All returns all answers, sorted by version, case and request.
func All(tb testing.TB) []Answer {
	tb.Helper()
	entries, err := files.ReadDir("testdata")
	expect.NoError(tb, err)
	var all []Answer
	for _, entry := range entries {
		text, err := files.ReadFile(path.Join("testdata", entry.Name()))
		expect.NoError(tb, err)
		cases := recorded{}
		expect.NoError(tb, json.Unmarshal(text, &cases))
		minor := strings.TrimSuffix(entry.Name(), ".json")
		for _, name := range slices.Sorted(maps.Keys(cases)) {
			for _, request := range slices.Sorted(maps.Keys(cases[name])) {
				all = append(all, Answer{Minor: minor, Case: name, Request: request, Status: cases[name][request]})
			}
		}
	}
	return all
}
