// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package crds

import "strings"

// Need is what a cluster needs the objects of a kind for, before pods can start or answer.
type Need string

// The needs.
const (
	// NeedNodes: nodes are provisioned or configured by these objects.
	NeedNodes Need = "NodeProvisioning"
	// NeedNetwork: pods are connected to the network by these objects.
	NeedNetwork Need = "PodNetwork"
	// NeedAdmission: pods are admitted by these objects.
	NeedAdmission Need = "PodAdmission"
	// NeedCertificates: certificates are issued by these objects.
	NeedCertificates Need = "CertificateIssuance"
	// NeedOperator: conversion-operator works by these objects. No policy can be for them.
	NeedOperator Need = "OperatorConfiguration"
)

// needs say what a component does with objects, and what an outage of their converter may lead to.
var needs = map[Need]struct{ purpose, outage string }{
	NeedNodes: {"to provision nodes",
		"after an outage of all nodes, it may be unable to read them, and no node starts for converter pods"},
	NeedNetwork: {"to connect pods to the network",
		"after an outage of all nodes, it may be unable to read them, and no converter pod starts"},
	NeedAdmission: {"to admit pods",
		"after an outage of all converter pods, it may be unable to read them, and no converter pod is admitted"},
	NeedCertificates: {"to issue certificates, perhaps that of the converter",
		"if that certificate expires, it may be unable to read them, and the certificate is never renewed"},
	NeedOperator: {"to run converter pods",
		"after an outage of all converter pods, it may be unable to read them, and repairs nothing"},
}

// Purpose says, after a verb, what a component does with the objects: to provision nodes.
func (n Need) Purpose() string { return needs[n].purpose }

// Outage says what may happen after an outage of the converter of the objects. The component is "it",
// and the objects are "them".
func (n Need) Outage() string { return needs[n].outage }

// Reader is a component of a cluster that needs objects of some API groups before pods can start or
// answer.
type Reader struct {
	// Name in messages.
	Name string
	Need Need
	// Groups are API groups; *.GROUP means all groups that end with .GROUP.
	Groups []string
	// RoutesServices tells that it can take the place of kube-proxy.
	RoutesServices bool
	// Source has the CustomResourceDefinitions of these groups, or describes them.
	Source string
}

// OperatorGroup is the API group of conversion-operator.
const OperatorGroup = "conversion-operator.io"

// CertManagerGroup is the API group of cert-manager.
const CertManagerGroup = "cert-manager.io"

// Readers are the known components. Others, which are not here, may exist in a cluster.
var Readers = []Reader{
	{Name: "Karpenter", Need: NeedNodes, Groups: []string{"karpenter.sh"},
		Source: "https://github.com/kubernetes-sigs/karpenter/tree/main/pkg/apis/crds"},
	{Name: "Karpenter", Need: NeedNodes, Groups: []string{"karpenter.k8s.aws"},
		Source: "https://github.com/aws/karpenter-provider-aws/tree/main/pkg/apis/crds"},
	{Name: "Karpenter", Need: NeedNodes, Groups: []string{"karpenter.azure.com"},
		Source: "https://github.com/Azure/karpenter-provider-azure/tree/main/pkg/apis/crds"},
	{Name: "EKS Auto Mode", Need: NeedNodes, Groups: []string{"eks.amazonaws.com"},
		Source: "https://docs.aws.amazon.com/eks/latest/userguide/create-node-class.html"},
	{Name: "Cluster API", Need: NeedNodes, Groups: []string{"cluster.x-k8s.io", "*.cluster.x-k8s.io"},
		Source: "https://github.com/kubernetes-sigs/cluster-api/tree/main/config/crd/bases"},
	{Name: "the Bare Metal Operator", Need: NeedNodes, Groups: []string{"metal3.io"},
		Source: "https://github.com/metal3-io/baremetal-operator/tree/main/config/crd/bases"},
	{Name: "the Machine API of OpenShift", Need: NeedNodes, Groups: []string{"machine.openshift.io"},
		Source: "https://github.com/openshift/api/tree/master/machine"},
	{Name: "the Machine Config Operator of OpenShift", Need: NeedNodes, Groups: []string{"machineconfiguration.openshift.io"},
		Source: "https://github.com/openshift/api/tree/master/machineconfiguration"},
	{Name: "the machine controller manager of Gardener", Need: NeedNodes, Groups: []string{"machine.sapcloud.io"},
		Source: "https://github.com/gardener/machine-controller-manager/tree/master/kubernetes/crds"},

	{Name: "Calico", Need: NeedNetwork, Groups: []string{"crd.projectcalico.org", "projectcalico.org"}, RoutesServices: true,
		Source: "https://github.com/projectcalico/calico/tree/master/libcalico-go/config/crd"},
	{Name: "the operator of Calico", Need: NeedNetwork, Groups: []string{"operator.tigera.io"}, RoutesServices: true,
		Source: "https://github.com/tigera/operator/tree/master/pkg/crds/operator"},
	{Name: "Cilium", Need: NeedNetwork, Groups: []string{"cilium.io"}, RoutesServices: true,
		Source: "https://github.com/cilium/cilium/tree/main/pkg/k8s/apis/cilium.io/client/crds"},
	{Name: "Antrea", Need: NeedNetwork, Groups: []string{"crd.antrea.io"}, RoutesServices: true,
		Source: "https://github.com/antrea-io/antrea/tree/main/build/charts/antrea/crds"},
	{Name: "OVN-Kubernetes", Need: NeedNetwork, Groups: []string{"k8s.ovn.org"}, RoutesServices: true,
		Source: "https://github.com/ovn-kubernetes/ovn-kubernetes/tree/master/dist/templates"},
	{Name: "Kube-OVN", Need: NeedNetwork, Groups: []string{"kubeovn.io"},
		Source: "https://github.com/kubeovn/kube-ovn/tree/master/charts/kube-ovn"},
	{Name: "Multus", Need: NeedNetwork, Groups: []string{"k8s.cni.cncf.io"},
		Source: "https://github.com/k8snetworkplumbingwg/multus-cni/tree/master/deployments"},
	{Name: "Whereabouts", Need: NeedNetwork, Groups: []string{"whereabouts.cni.cncf.io"},
		Source: "https://github.com/k8snetworkplumbingwg/whereabouts/tree/master/doc/crds"},
	{Name: "the Amazon VPC CNI plugin", Need: NeedNetwork, Groups: []string{"crd.k8s.amazonaws.com", "networking.k8s.aws"},
		Source: "https://github.com/aws/amazon-vpc-cni-k8s/tree/master/charts/aws-vpc-cni/crds"},
	{Name: "the Amazon VPC resource controller", Need: NeedNetwork, Groups: []string{"vpcresources.k8s.aws"},
		Source: "https://github.com/aws/amazon-vpc-resource-controller-k8s/tree/master/config/crd"},
	{Name: "Azure CNI", Need: NeedNetwork, Groups: []string{"acn.azure.com"},
		Source: "https://github.com/Azure/azure-container-networking/tree/master/crd"},
	{Name: "Terway", Need: NeedNetwork, Groups: []string{"network.alibabacloud.com"},
		Source: "https://github.com/AliyunContainerService/terway/tree/main/pkg/apis/crds"},

	{Name: "Kyverno", Need: NeedAdmission, Groups: []string{"kyverno.io", "policies.kyverno.io"},
		Source: "https://github.com/kyverno/kyverno/tree/main/config/crds"},
	{Name: "Gatekeeper", Need: NeedAdmission, Groups: []string{"*.gatekeeper.sh"},
		Source: "https://github.com/open-policy-agent/gatekeeper/tree/master/config/crd/bases"},

	{Name: "cert-manager", Need: NeedCertificates, Groups: []string{CertManagerGroup, "acme." + CertManagerGroup},
		Source: "https://github.com/cert-manager/cert-manager/tree/master/deploy/crds"},
	{Name: "approver-policy", Need: NeedCertificates, Groups: []string{"policy." + CertManagerGroup},
		Source: "https://github.com/cert-manager/approver-policy/tree/main/deploy/crds"},

	{Name: "conversion-operator", Need: NeedOperator, Groups: []string{OperatorGroup, "*." + OperatorGroup},
		Source: "https://github.com/conversion-operator/conversion-operator/tree/main/config/crd"},
}

// ReaderOf returns the component that needs the objects of an API group; nil if none is known.
func ReaderOf(group string) *Reader {
	for i, reader := range Readers {
		for _, known := range reader.Groups {
			family, isFamily := strings.CutPrefix(known, "*")
			if group == known || isFamily && strings.HasSuffix(group, family) {
				return &Readers[i]
			}
		}
	}
	return nil
}
