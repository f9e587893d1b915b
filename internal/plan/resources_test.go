// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/conversion-operator/conversion-operator/internal/plan/workload"
)

// seen are the measured numbers in a row of the table.
var seen = regexp.MustCompile(`(\d+) MiB`)

// TestResourcesAreDocumented: the table of hardening.md is the one place with requests
// and limits, beside what was measured. It says what is installed, what policies have
// by default, and what migrations get; and the limits leave room above what was seen.
func TestResourcesAreDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "api", "docs", "hardening.md"))
	if err != nil {
		t.Fatal(err)
	}
	pods := podTemplates(t)
	for name, has := range map[string]corev1.ResourceRequirements{
		"manager":       pods["manager"].Spec.Containers[0].Resources,
		"converter pod": defaultResources(t),
		"migration":     pods["migration"].Spec.Containers[0].Resources,
	} {
		t.Run(name, func(t *testing.T) {
			_, row, found := strings.Cut(string(text), "\n| "+name+" |")
			if !found {
				t.Fatal("hardening.md has no row for it")
			}
			row, _, _ = strings.Cut(row, "\n")
			cells := strings.Split(row, " | ")
			want := []string{fmt.Sprintf(" %s, %s", has.Requests.Cpu(), has.Requests.Memory()), has.Limits.Memory().String()}
			if diff := cmp.Diff(want, cells[:min(2, len(cells))]); diff != "" {
				t.Errorf("requests and limit (-installed +documented):\n%s", diff)
			}
			if len(has.Limits) != 1 || len(has.Requests) != 2 {
				t.Errorf("it has %v and %v, and the table speaks of CPU and memory requested, and memory limited", has.Requests, has.Limits)
			}
			measured := seen.FindAllStringSubmatch(row, -1)
			if len(measured) == 0 {
				t.Error("nothing was measured")
			}
			for _, number := range measured {
				if most := resource.MustParse(number[1] + "Mi"); most.Cmp(*has.Limits.Memory()) >= 0 {
					t.Errorf("%s was seen, and the limit is %s", number[0], has.Limits.Memory())
				}
			}
		})
	}
}

// defaultResources are those of converter pods whose policy says nothing of them, as its field says.
func defaultResources(t *testing.T) corev1.ResourceRequirements {
	t.Helper()
	defaults := workload.Default(nil).Resources
	says := fmt.Sprintf("requests of %s and %s and a limit of %s", defaults.Requests.Cpu(), defaults.Requests.Memory(), defaults.Limits.Memory())
	field := installed(t).Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["workload"].Properties["resources"]
	if !strings.Contains(strings.Join(strings.Fields(field.Description), " "), says) {
		t.Errorf("workload.resources does not have %q: %s", says, field.Description)
	}
	return corev1.ResourceRequirements{Requests: defaults.Requests, Limits: defaults.Limits}
}

// installed is the definition of ConversionPolicy.
func installed(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "config", "crd", "bases", "conversion-operator.io_conversionpolicies.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	read(t, string(text), crd)
	return crd
}
