// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
)

// Placement tells on which nodes pods run, and with which priority. The pods inherit each
// field that is not set from the manager's pod; of its affinity only nodeAffinity, and of
// its tolerations those without tolerationSeconds.
type Placement struct {
	// priorityClassName is the priority class of the pods. For converter pods,
	// system-cluster-critical is appropriate, if a ResourceQuota allows it in the operator's
	// namespace: every request for an object that needs a conversion waits for them.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// nodeSelector selects the nodes of the pods by labels. The operator adds
	// kubernetes.io/os: linux, because its image is for Linux.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// tolerations are the taints of nodes that the pods tolerate. Without one for
	// node.kubernetes.io/unreachable or node.kubernetes.io/not-ready, converter pods leave a
	// lost node after 30 seconds. "kubectl explain pod.spec.tolerations" describes the members.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// affinity is the affinity of the pods to nodes and other pods. "kubectl explain
	// pod.spec.affinity" describes the members.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`
}

// WorkloadType is where the converter runs.
// +kubebuilder:validation:Enum=Fleet;Dedicated
type WorkloadType string

const (
	// WorkloadFleet are the pods of a ConverterFleet, which many policies share.
	WorkloadFleet WorkloadType = "Fleet"
	// WorkloadDedicated are pods of the policy alone.
	WorkloadDedicated WorkloadType = "Dedicated"
)

// Workload tells in which pods the converter runs: type, and the member of that name.
// +kubebuilder:validation:XValidation:rule="!has(self.fleet) || self.type == 'Fleet'",message="fleet must be empty unless type is Fleet"
// +kubebuilder:validation:XValidation:rule="!has(self.dedicated) || self.type == 'Dedicated'",message="dedicated must be empty unless type is Dedicated"
type Workload struct {
	// type is Fleet or Dedicated. In a Fleet, pods serve the rules of many policies. Dedicated
	// pods serve this policy alone; an image always runs in such pods. You can change it at
	// any time: conversions continue.
	// +required
	// +unionDiscriminator
	Type WorkloadType `json:"type"`

	// fleet names the fleet; by default it is the one named default, which the operator
	// creates.
	// +optional
	// +unionMember
	Fleet *FleetWorkload `json:"fleet,omitempty"`

	// dedicated configures the pods of this policy.
	// +optional
	// +unionMember
	Dedicated *ConverterPods `json:"dedicated,omitempty"`
}

// FleetWorkload names a ConverterFleet.
type FleetWorkload struct {
	// name is the name of the ConverterFleet.
	// +required
	Name FleetName `json:"name"`
}

// ConverterPods configures converter pods and the objects that the operator deploys for
// them.
// +kubebuilder:validation:XValidation:rule="!has(self.port) || self.port != 8080",message="port 8080 is where converter pods answer Prometheus: choose another port"
type ConverterPods struct {
	// replicas is the number of converter pods; 2 by default. The pods of a fleet have the
	// replicas of the fleet.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Replicas *int32 `json:"replicas,omitempty"`

	// resources are the compute resources of each converter pod. If they are absent, the
	// operator chooses them, currently requests of 50m and 32Mi and a limit of 256Mi; {}
	// requests and limits nothing.
	// +optional
	Resources *Resources `json:"resources,omitempty"`

	Placement `json:",inline"`

	// topologySpreadConstraints replace those of the operator, which spread converter pods
	// over hosts and zones if possible. A constraint without a labelSelector selects the
	// converter pods of this policy. "kubectl explain pod.spec.topologySpreadConstraints"
	// describes the members.
	// +optional
	// +listType=map
	// +listMapKey=topologyKey
	// +listMapKey=whenUnsatisfiable
	// +kubebuilder:validation:MaxItems=16
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`

	// hostNetwork lets converter pods listen at the addresses of their nodes, for control
	// planes that can reach nodes but not pods. Then a node can have only one converter
	// pod per port, also of different policies. The operator's namespace must admit such
	// pods, which are not "restricted".
	// +optional
	HostNetwork bool `json:"hostNetwork,omitempty"`

	// port is the port of the operator's own converter pods, for control planes that can
	// reach only certain ports, such as 443 and 10250. The operator chooses one by default,
	// currently 9443. The port of an image is converter.image.port.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`

	// patches are kustomize patches for the Deployment, the Service and the
	// PodDisruptionBudget of the converter, applied in order. The operator then restores
	// the fields that it needs; see own-converter.md for a list. The limits let all patches
	// fit into a policy, which may take 1.5 MiB in etcd.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Patches []Patch `json:"patches,omitempty"`
}

// Resources are compute resources of a container.
type Resources struct {
	// requests are the reserved resources.
	// +optional
	Requests corev1.ResourceList `json:"requests,omitempty"`
	// limits are the maximum resources.
	// +optional
	Limits corev1.ResourceList `json:"limits,omitempty"`
}

// Patch is a kustomize patch: a strategic merge patch, or a JSON patch (RFC 6902).
type Patch struct {
	// target selects the objects to patch. A JSON patch needs one; a strategic
	// merge patch may name its object by apiVersion, kind and metadata.name instead.
	// +optional
	Target *PatchTarget `json:"target,omitempty"`

	// patch is the patch, in YAML or JSON.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16384
	Patch string `json:"patch"`
}

// PatchTarget selects the objects that match all of its fields.
// +kubebuilder:validation:MinProperties=1
type PatchTarget struct {
	// kind is a regular expression for the kind, such as Deployment.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Kind string `json:"kind,omitempty"`
	// name is a regular expression for the name.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}
