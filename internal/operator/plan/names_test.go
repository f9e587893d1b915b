// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

func TestNames(t *testing.T) {
	policies := []string{
		"crontabs.example.com",
		"crontabs-example.com",
		strings.Repeat("a", 63) + "." + strings.Repeat("b", 63) + ".example.com",
		strings.Repeat("a", 35) + ".-.example.com",
		"converter-fleet-default.example.com",
		"converter-fleet-.example.com",
	}
	seen := map[string]string{}
	for _, policy := range policies {
		child := names.Child(policy)
		if other, twice := seen[child]; twice {
			t.Errorf("%s and %s have the same name %s", policy, other, child)
		}
		seen[child] = policy
		expect.Equal(t, "fleet whose objects those of policy "+policy+" look as", "", names.FleetOf(child))
		expect.Equal(t, child+" as the name of a Service", nil, validation.IsDNS1035Label(child))
		for _, name := range []string{names.Run(policy, "0a1b2c3d"), names.Rulesets(policy)} {
			expect.Equal(t, name, nil, validation.IsDNS1123Subdomain(name))
		}
		for _, account := range []string{names.MigrationRights(policy), names.ReadRights(policy), names.CleanRights(policy)} {
			expect.Equal(t, account+" may have rights", true, names.HasRights(account))
			expect.Equal(t, child+" may have rights", false, names.HasRights(child))
		}
		expect.Equal(t, "a Job's name, which becomes a label of its pods", nil, validation.IsValidLabelValue(names.Run(policy, "0a1b2c3d")))
	}
}

// TestRunID: whatever a run is pinned to makes another run of it.
func TestRunID(t *testing.T) {
	base := apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{UID: "a", Generation: 1}}
	recreated, changed := base, base
	recreated.UID = "b"
	changed.Generation = 2
	ids := map[string]string{}
	for name, id := range map[string]string{
		"base":            names.RunID(&base, "v1", ""),
		"recreated":       names.RunID(&recreated, "v1", ""),
		"changed":         names.RunID(&changed, "v1", ""),
		"storage version": names.RunID(&base, "v2", ""),
		"trigger":         names.RunID(&base, "v1", "again"),
		"shifted":         names.RunID(&base, "v", "1"),
	} {
		if other, twice := ids[id]; twice {
			t.Errorf("%s and %s are the same run", name, other)
		}
		ids[id] = name
	}
	again := base
	expect.Equal(t, "run of the same pins", names.RunID(&base, "v1", ""), names.RunID(&again, "v1", ""))
}

var (
	gateOf     = regexp.MustCompile(`(?m)^\t\{v1alpha1\.\w+Condition, (.*)\},$`)
	roomOf     = regexp.MustCompile(`return p\.(\w+)\.(\w+)\(`)
	gateInTold = regexp.MustCompile(`(?m)^//\t[A-Z(][\w ]+\)? +(\w+/\w+\.go) `)
)

// TestGatesAreTold: doc.go names the file of each gate, in the order of passing.
func TestGatesAreTold(t *testing.T) {
	sources := map[string]string{}
	for _, pattern := range []string{"*.go", "*/*.go"} {
		files, err := filepath.Glob(pattern)
		expect.NoError(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			expect.NoError(t, err)
			sources[filepath.ToSlash(file)] = string(text)
		}
	}
	var passed, told []string
	for _, gate := range gateOf.FindAllStringSubmatch(sources["plan.go"], -1) {
		room := roomOf.FindStringSubmatch(gate[1])
		for file, text := range sources {
			if strings.HasPrefix(file, room[1]+"/") &&
				regexp.MustCompile(`(?m)^func \(\w \*\w+\) `+room[2]+`\(`).MatchString(text) {
				passed = append(passed, file)
			}
		}
	}
	for _, line := range gateInTold.FindAllStringSubmatch(sources["doc.go"], -1) {
		told = append(told, line[1])
	}
	if diff := cmp.Diff(passed, told); diff != "" || len(passed) == 0 {
		t.Errorf("files of gates (-plan.go +doc.go):\n%s", diff)
	}
}
