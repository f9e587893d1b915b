// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/gate"
)

// reportBootstrap warns of a converter that may need objects of the kind that it converts, before
// its pods can start or answer. An outage of all pods could then last until someone intervenes. API
// servers call a converter only for objects that are stored at another version than the requested
// one, so there is no risk if only one version is in use.
func (h *Health) reportBootstrap() {
	risk := gate.Outcome{}
	if h.CRD != nil && h.converter.Active && h.PointsHere() && len(crds.VersionsInUse(h.CRD)) > 1 {
		risk = h.bootstrapRisk()
	}
	h.report(v1alpha1.BootstrapDependencyCondition, risk)
}

// bootstrapRisk is the zero Outcome if no known component needs objects of the kind.
func (h *Health) bootstrapRisk() gate.Outcome {
	fleet := h.NamedFleet()
	reader := crds.ReaderOf(h.CRD.Spec.Group)
	switch {
	case h.IssuesItself(fleet):
		return h.dependsOn("cert-manager", dependencyOf(crds.NeedCertificates))
	case reader == nil, reader.Need == crds.NeedCertificates && !h.othersIssue(fleet):
		return gate.Outcome{}
	case reader.Need != crds.NeedNetwork || !startsWithoutNetwork(h.WorkloadAt(fleet)):
		return h.dependsOn(reader.Name, dependencyOf(reader.Need))
	case reader.RoutesServices:
		return h.dependsOn(reader.Name, routesServices)
	}
	return gate.Outcome{}
}

// othersIssue reports that the operator does not issue the certificate of a fleet, or of the policy
// alone if fleet is empty.
func (h *Health) othersIssue(fleet string) bool {
	source := h.CertificatesAt(fleet).Type
	return source != "" && source != v1alpha1.CertificatesSelfManaged
}

// startsWithoutNetwork reports that pods can be scheduled to nodes that have no network for pods yet,
// and start there. The control plane taints such nodes as not ready: nodeConditionToTaintKeyStatusMap
// in pkg/controller/nodelifecycle of k8s.io/kubernetes.
func startsWithoutNetwork(pods v1alpha1.ConverterPods) bool {
	return pods.HostNetwork && slices.ContainsFunc(pods.Tolerations, func(toleration corev1.Toleration) bool {
		return (toleration.Key == corev1.TaintNodeNotReady || toleration.Key == "") && toleration.Value == "" &&
			(toleration.Effect == corev1.TaintEffectNoSchedule || toleration.Effect == "")
	})
}

// dependency says what a component does with objects, what an outage of the converter then leads to,
// and what prevents that. PLACE stands for where the converter pods are configured.
type dependency struct{ does, fails, remedy string }

func dependencyOf(need crds.Need) dependency {
	return dependency{need.Purpose(), need.Outage(), remedies[need]}
}

// remedies prevent what an outage leads to, besides the end of the dependency.
var remedies = map[crds.Need]string{
	crds.NeedNodes:        "run converter pods on nodes that it does not provision, or ",
	crds.NeedNetwork:      "set hostNetwork: true and a toleration of node.kubernetes.io/not-ready in the workload PLACE, or ",
	crds.NeedAdmission:    "exempt the namespace of the operator from its webhooks, or ",
	crds.NeedCertificates: "set the type of spec.certificates PLACE to SelfManaged, or ",
}

// routesServices is what host networking does not solve.
var routesServices = dependency{"to route Services, if it takes the place of kube-proxy",
	"after an outage of all nodes, it may be unable to read them, and no converter pod is reached", ""}

// dependsOn warns of a dependency.
func (h *Health) dependsOn(reader string, on dependency) gate.Outcome {
	place := "of the policy"
	if fleet := h.NamedFleet(); fleet != "" {
		place = "of ConverterFleet " + fleet
	}
	return gate.Abnormal(v1alpha1.ReasonNeededToStart, strings.ReplaceAll(fmt.Sprintf(
		"%s reads objects of this kind %s: %s; %smake it request %s, migrate all objects, and stop serving the other versions",
		reader, on.does, on.fails, on.remedy, crds.StorageVersion(h.CRD)), "PLACE", place))
}
