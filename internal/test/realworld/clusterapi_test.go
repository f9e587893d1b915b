// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package realworld

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/cluster-api-ipam-provider-in-cluster/api/v1alpha1"
	"sigs.k8s.io/cluster-api-ipam-provider-in-cluster/api/v1alpha2"
	kubeadmv1beta1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta1"
	kubeadmv1beta2 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1beta1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta1"
	controlplanev1beta2 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	"sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func init() {
	// In a cluster, their webhook reads the versions from CustomResourceDefinitions.
	versionOf := func(kind schema.GroupKind) (string, error) { return kind.Group + "/v1beta1", nil }
	v1beta1.SetAPIVersionGetter(versionOf)
	controlplanev1beta1.SetAPIVersionGetter(versionOf)
}

// clusterAPI is a kind of Cluster API's v1beta2.
func clusterAPI[Spoke, Hub any](sample, crd string) project {
	p := kind[Spoke, Hub](sample, "sigs.k8s.io/cluster-api", crd)
	p.keeps = []string{"cluster.x-k8s.io/conversion-data"}
	p.examples[quantity] = quantities
	p.differences = differencesOfClusterAPI()
	return p
}

// times are durations for the fields of v1beta1 at these paths.
func (p *project) times(paths ...string) {
	for _, path := range paths {
		p.examples["v1beta1:"+path] = []any{"10m0s", "0s", "1h0m0s", "90s", "1.5s", "600s"}
	}
}

// drains are durations for the fields of a machine at a path.
func (p *project) drains(at string) {
	p.times(at+".nodeDrainTimeout", at+".nodeVolumeDetachTimeout", at+".nodeDeletionTimeout")
}

// references are values of apiVersion for the fields of v1beta1 at these paths.
func (p *project) references(paths ...string) {
	for _, path := range paths {
		p.examples["v1beta1:"+path+".apiVersion"] = []any{"infrastructure.cluster.x-k8s.io/v1beta1", "bootstrap.cluster.x-k8s.io/v1alpha4", "v1", ""}
	}
}

// differencesOfClusterAPI are those that many of its kinds have.
func differencesOfClusterAPI() []difference {
	const (
		zero     = "theirs drops false, zeros, and empty texts, lists and objects, or adds them; ours copies what is there"
		fraction = "theirs cuts 1.5s down to one second; ours has no value for it, and keeps the text"
	)
	return []difference{
		{"v1beta2", "**", func(theirs, ours any) bool { return isZero(theirs) && isZero(ours) }, zero},
		{"v1beta2", "**", func(theirs, ours any) bool { return isOne(theirs) && ours == absent }, fraction},
	}
}

// isOne reports whether a value is 1, or an object of such values.
func isOne(value any) bool {
	object := asMap(value)
	for _, member := range object {
		if !isOne(member) {
			return false
		}
	}
	return len(object) > 0 || show(value) == "1"
}

func TestMachine(t *testing.T) {
	p := clusterAPI[v1beta1.Machine, v1beta2.Machine]("cluster-api-machines", "config/crd/bases/cluster.x-k8s.io_machines.yaml")
	p.drains(".spec")
	p.references(".spec.infrastructureRef", ".spec.bootstrap.configRef")
	p.check(t)
}

func TestMachineSet(t *testing.T) {
	p := clusterAPI[v1beta1.MachineSet, v1beta2.MachineSet]("cluster-api-machinesets", "config/crd/bases/cluster.x-k8s.io_machinesets.yaml")
	p.ofTemplate()
	p.check(t)
}

func TestMachineDeployment(t *testing.T) {
	p := clusterAPI[v1beta1.MachineDeployment, v1beta2.MachineDeployment]("cluster-api-machinedeployments", "config/crd/bases/cluster.x-k8s.io_machinedeployments.yaml")
	p.ofTemplate()
	p.check(t)
}

func TestMachinePool(t *testing.T) {
	p := clusterAPI[v1beta1.MachinePool, v1beta2.MachinePool]("cluster-api-machinepools", "config/crd/bases/cluster.x-k8s.io_machinepools.yaml")
	p.ofTemplate()
	p.check(t)
}

// ofTemplate adds examples and differences for a template of machines.
func (p *project) ofTemplate() {
	const template = ".spec.template.spec"
	p.drains(template)
	p.references(template+".infrastructureRef", template+".bootstrap.configRef")
}

func TestCluster(t *testing.T) {
	p := clusterAPI[v1beta1.Cluster, v1beta2.Cluster]("cluster-api-clusters", "config/crd/bases/cluster.x-k8s.io_clusters.yaml")
	const topology = ".spec.topology"
	for _, part := range []string{".controlPlane", ".workers.machineDeployments[*]", ".workers.machinePools[*]"} {
		part = topology + part
		p.drains(part)
		p.times(part+".machineHealthCheck.nodeStartupTimeout", part+".machineHealthCheck.unhealthyConditions[*].timeout")
	}
	p.references(".spec.controlPlaneRef", ".spec.infrastructureRef")
	p.check(t)
}

func TestKubeadmConfig(t *testing.T) {
	p := clusterAPI[kubeadmv1beta1.KubeadmConfig, kubeadmv1beta2.KubeadmConfig]("cluster-api-kubeadmconfigs", "bootstrap/kubeadm/config/crd/bases/bootstrap.cluster.x-k8s.io_kubeadmconfigs.yaml")
	p.ofKubeadm(".spec")
	p.check(t)
}

func TestKubeadmControlPlane(t *testing.T) {
	p := clusterAPI[controlplanev1beta1.KubeadmControlPlane, controlplanev1beta2.KubeadmControlPlane]("cluster-api-kubeadmcontrolplanes", "controlplane/kubeadm/config/crd/bases/controlplane.cluster.x-k8s.io_kubeadmcontrolplanes.yaml")
	const machine = ".spec.machineTemplate"
	p.times(".spec.remediationStrategy.minHealthyPeriod", ".spec.remediationStrategy.retryPeriod")
	p.drains(machine)
	p.references(machine + ".infrastructureRef")
	p.ofKubeadm(".spec.kubeadmConfigSpec")
	p.check(t)
}

// ofKubeadm adds examples and differences for a configuration of kubeadm.
func (p *project) ofKubeadm(config string) {
	join := config + ".joinConfiguration"
	p.times(config+".initConfiguration.bootstrapTokens[*].ttl", config+".clusterConfiguration.apiServer.timeoutForControlPlane", join+".discovery.timeout")
	p.examples[config+".initConfiguration.bootstrapTokens[*].token"] = []any{"abcdef.0123456789abcdef"}
	p.examples[config+".files[*].path"] = []any{"/etc/one", "/etc/two"}
	p.examples[config+".clusterConfiguration.scheduler.extraVolumes[*].hostPath"] = []any{"/var/one", "/var/two"}
	argument := func(value string) any { return map[string]any{"name": "v", "value": value} }
	p.examples["v1beta2:"+config+".clusterConfiguration.scheduler.extraArgs"] = []any{
		[]any{argument("1")}, []any{argument("1"), argument("2")},
	}
	const (
		twice   = "theirs takes the last of two arguments with one name; the expression has no result for them, and ours preserves the list"
		empty   = "theirs drops an initConfiguration or joinConfiguration without values in v1beta1; ours copies it"
		first   = "theirs takes append from the first file with the same path, and readOnly from the first volume with the same hostPath; ours copies those of each"
		joining = "theirs also writes the timeout of the control plane into joinConfiguration; a field belongs to one rule, and ours leaves it out"
	)
	p.differences = append(p.differences,
		difference{"v1beta1", config + ".**xtraArgs", func(theirs, ours any) bool { return asMap(theirs) != nil && ours == absent }, twice},
		difference{"v1beta1", config + ".**Configuration", func(theirs, ours any) bool { return theirs == absent && isZero(ours) }, empty},
		difference{"v1beta2", config + ".files[*].append", func(theirs, ours any) bool { return isZero(theirs) != isZero(ours) }, first},
		difference{"v1beta2", config + ".clusterConfiguration.**.extraVolumes[*].readOnly", func(theirs, ours any) bool { return isZero(theirs) != isZero(ours) }, first},
		difference{"v1beta2", join, func(theirs, ours any) bool { return asMap(theirs)["timeouts"] != nil && ours == absent }, joining},
		difference{"v1beta2", join + ".timeouts", onlyTheirs, joining},
		difference{"v1beta2", join + ".timeouts.controlPlaneComponentHealthCheckSeconds", onlyTheirs, joining})
}

// TestMachineHealthCheck: Cluster API changed durations to seconds as integers.
func TestMachineHealthCheck(t *testing.T) {
	p := clusterAPI[v1beta1.MachineHealthCheck, v1beta2.MachineHealthCheck]("cluster-api-machinehealthchecks", "config/crd/bases/cluster.x-k8s.io_machinehealthchecks.yaml")
	p.differences = differencesOfMachineHealthCheck()
	p.examples = map[string][]any{
		".spec.nodeStartupTimeout":             {"10m0s", "0s", "1h0m0s", "90s", "1.5s", "600s", "1m30s", "-5s"},
		".spec.unhealthyConditions[*].timeout": {"5m0s", "300s", "0s", "45s", "1.5s", "1h0m1s"},
	}
	p.check(t)
}

func differencesOfMachineHealthCheck() []difference {
	const (
		fraction = "theirs cuts 1.5s down to one second; ours has no value for it, and keeps the text"
		empty    = "v1beta2 allows no empty list of conditions, and theirs makes it nothing; ours copies it"
		zero     = "their v1beta1 cannot tell a counter of zero from a missing one, and drops both; ours copies the zero"
	)
	cut := func(theirs, ours any) bool { return show(theirs) == "1" && ours == absent }
	droppedZero := func(theirs, ours any) bool { return theirs == absent && show(ours) == "0" }
	return []difference{
		{"v1beta2", ".spec.checks.nodeStartupTimeoutSeconds", cut, fraction},
		{"v1beta2", ".spec.checks.unhealthyNodeConditions[*].timeoutSeconds", cut, fraction},
		{"v1beta2", ".spec.checks", func(theirs, ours any) bool {
			return show(theirs) == `{"nodeStartupTimeoutSeconds":1}` && ours == absent
		}, fraction},
		{"v1beta2", ".spec.checks", func(theirs, ours any) bool { return theirs == absent && show(ours) == "{}" }, empty},
		{"v1beta2", ".status.currentHealthy", droppedZero, zero},
		{"v1beta2", ".status.expectedMachines", droppedZero, zero},
		{"v1beta2", ".status.remediationsAllowed", droppedZero, zero},
		{"v1beta2", ".status", func(theirs, ours any) bool { return theirs == absent && onlyZeros(ours) }, zero},
	}
}

// onlyZeros reports whether an object has only zero values.
func onlyZeros(object any) bool {
	for _, value := range asMap(object) {
		if show(value) != "0" {
			return false
		}
	}
	return asMap(object) != nil
}

// TestInClusterIPPool: v1alpha2 of the Cluster API IPAM provider in-cluster.
func TestInClusterIPPool(t *testing.T) {
	p := kind[v1alpha1.InClusterIPPool, v1alpha2.InClusterIPPool]("cluster-api-inclusterippools", "sigs.k8s.io/cluster-api-ipam-provider-in-cluster", "config/crd/bases/ipam.cluster.x-k8s.io_inclusterippools.yaml")
	p.keeps = []string{"cluster.x-k8s.io/conversion-data"}
	p.differences = []difference{
		{"v1alpha2", ".spec.addresses", func(theirs, ours any) bool {
			all, _ := theirs.([]any)
			some, _ := ours.([]any)
			return len(all) == len(some)+1
		}, "theirs computes the first and the last address of a subnet; expressions cannot"},
		{"v1alpha2", ".spec.prefix", func(theirs, _ any) bool { return strings.HasPrefix(fmt.Sprint(theirs), "-") },
			"theirs copies a negative prefix, which v1alpha2 does not allow; ours has no value for it, and preserves it"},
	}
	p.examples = map[string][]any{".spec.subnet": {"", "10.0.0.0/24", "192.168.4.0/22", "fd00::/64"}}
	p.check(t)
}
