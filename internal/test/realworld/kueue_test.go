// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package realworld

import (
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/kueue/apis/kueue/v1beta1"
	"sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// kueue is a kind of Kueue's v1beta2.
func kueue[Spoke, Hub any](sample string) project {
	plural := strings.TrimPrefix(sample, "kueue-")
	p := kind[Spoke, Hub](sample, "sigs.k8s.io/kueue", "config/components/crd/bases/kueue.x-k8s.io_"+plural+".yaml")
	p.examples[quantity] = quantities
	return p
}

func TestClusterQueue(t *testing.T) {
	p := kueue[v1beta1.ClusterQueue, v1beta2.ClusterQueue]("kueue-clusterqueues")
	const nameless = "theirs writes a check without a name, which v1beta2 does not allow; ours has no value for the list, and preserves it"
	isNameless := func(checks any) bool {
		list, _ := checks.([]any)
		return slices.ContainsFunc(list, func(check any) bool { return asMap(check)["name"] == nil })
	}
	p.differences = []difference{
		{"v1beta2", ".spec.admissionChecksStrategy", func(theirs, ours any) bool {
			return ours == absent && isNameless(asMap(theirs)["admissionChecks"])
		}, nameless},
		{"v1beta2", ".spec.admissionChecksStrategy.admissionChecks", func(theirs, ours any) bool { return ours == absent && isNameless(theirs) }, nameless},
	}
	p.check(t)
}

func TestLocalQueue(t *testing.T) {
	p := kueue[v1beta1.LocalQueue, v1beta2.LocalQueue]("kueue-localqueues")
	p.check(t)
}

func TestCohort(t *testing.T) {
	p := kueue[v1beta1.Cohort, v1beta2.Cohort]("kueue-cohorts")
	p.check(t)
}

func TestMultiKueueCluster(t *testing.T) {
	p := kueue[v1beta1.MultiKueueCluster, v1beta2.MultiKueueCluster]("kueue-multikueueclusters")
	const empty = "theirs drops a kubeConfig without a location; ours moves it"
	noLocation := func(kubeConfig any) bool { return asMap(kubeConfig)["location"] == "" }
	p.differences = []difference{
		{"v1beta2", ".spec", func(theirs, ours any) bool {
			return theirs == absent && noLocation(asMap(asMap(ours)["clusterSource"])["kubeConfig"])
		}, empty},
		{"v1beta2", ".spec.clusterSource.kubeConfig", func(theirs, ours any) bool { return theirs == absent && noLocation(ours) }, empty},
	}
	p.check(t)
}

func TestWorkload(t *testing.T) {
	p := kueue[v1beta1.Workload, v1beta2.Workload]("kueue-workloads")
	// The template is the same in both versions.
	p.examples[".spec.podSets[*].template.spec"] = []any{map[string]any{"containers": []any{map[string]any{"name": "main", "image": "example.com/image"}}}}
	const assignment = ".status.admission.podSetAssignments[*].topologyAssignment"
	// Their functions need as many values as levels, and as many counts as domains.
	p.examples["v1beta1:"+assignment] = []any{
		map[string]any{"levels": []any{"rack"}, "domains": []any{}},
		map[string]any{"levels": []any{"rack", "host"}, "domains": []any{
			map[string]any{"count": 2, "values": []any{"rack-1", "host-1"}},
			map[string]any{"count": 3, "values": []any{"rack-1", "host-2"}},
		}},
	}
	p.examples["v1beta2:"+assignment] = []any{
		map[string]any{"levels": []any{"rack"}, "slices": []any{}},
		map[string]any{"levels": []any{"rack"}, "slices": []any{map[string]any{
			"domainCount": 2, "podCounts": map[string]any{"universal": 2},
			"valuesPerLevel": []any{map[string]any{"individual": map[string]any{"prefix": "rack-", "roots": []any{"1", "2"}}}},
		}}},
	}
	const sliced = "the slices of v1beta2 may have 100,000 values, and an expression for them costs too much; ours preserves the domains, and the slices"
	p.unsaid = map[string]string{"v1beta1:" + assignment + ".domains": sliced, "v1beta2:" + assignment + ".slices": sliced}
	p.differences = []difference{
		{"v1beta1", assignment + ".domains", func(theirs, ours any) bool { return theirs != absent && (ours == absent || ours == nil) }, sliced},
		{"v1beta2", assignment + ".slices", func(theirs, ours any) bool { return theirs != absent && (ours == absent || ours == nil) }, sliced},
		{"v1beta2", ".spec.priorityClassRef", func(theirs, ours any) bool { return ours == absent && asMap(theirs)["name"] == nil },
			"theirs writes a reference without a name, which v1beta2 does not allow; ours has no value for it, and preserves the source"},
	}
	p.check(t)
}
