// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/workload"
	"github.com/conversion-operator/conversion-operator/internal/test/etcd"
	"github.com/conversion-operator/conversion-operator/internal/test/node"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
	"github.com/conversion-operator/conversion-operator/internal/webhook/probe"
)

// system is the operator's namespace.
const system = "conversion-system"

// Observation is one observation of a subject, while its CRD did not change, and the expected state of it and of the
// cluster. An object that does not exist is empty.
type Observation struct {
	Time    time.Time
	Subject *Subject
	State   State
	CRD     apiextensionsv1.CustomResourceDefinition
	Policy  v1alpha1.ConversionPolicy
	// Fleet is the fleet that the policy uses, if any.
	Fleet v1alpha1.ConverterFleet
	// Children are the objects that the operator created for the subject, Records are those of migrations.
	Children []unstructured.Unstructured
	Records  []contract.Record
	// Rulesets are those of the policy that are stored.
	Rulesets []ruleset
	Stored   []Stored
	// Pruned is the etcd revision at which another client pruned status.storedVersions; 0 if all objects
	// are stored at listed versions.
	Pruned int64
	// Reads are of all objects in every served version.
	Reads []read
	Pods  []pod
}

// Stored is an object in etcd: the version of its bytes, and the revision of their last write.
type Stored struct {
	Name, Version string
	Revision      int64
	Annotations   map[string]string
}

// ruleset is one by its hash, at the converter pods with an instance label.
type ruleset struct{ Instance, Hash string }

// read is an object as a client reads it: its spec, or an error.
type read struct {
	object
	Got     any
	Refused error
}

// pod is a converter pod, as API servers see it that connect to it: what it reports if a connection verifies its
// certificate, and the error otherwise.
type pod struct {
	Name  string
	Ready bool
	probe.Result
	Refused *probe.Error
}

func (now Observation) stored() []Stored                      { return now.Stored }
func (now Observation) reads() []read                         { return now.Reads }
func (now Observation) rulesets() []ruleset                   { return now.Rulesets }
func (now Observation) pods() []pod                           { return now.Pods }
func (now Observation) children() []unstructured.Unstructured { return now.Children }

// storage returns the storage version of the CRD, if there is one.
func (now Observation) storage() string { return crds.StorageVersion(&now.CRD) }

// has reports whether the CRD has a version, and lists whether status.storedVersions lists it.
func (now Observation) has(version string) bool {
	is, _ := crds.Version(&now.CRD, version)
	return is != nil
}

func (now Observation) lists(version string) bool {
	return slices.Contains(now.CRD.Status.StoredVersions, version)
}

// prunes reports whether status.storedVersions lists fewer versions than before.
func (now Observation) prunes(before Observation) bool {
	return slices.ContainsFunc(before.CRD.Status.StoredVersions, func(version string) bool { return !now.lists(version) })
}

// condition returns a condition of the policy; the zero value if there is none.
func (now Observation) condition(name string) metav1.Condition {
	return *cmp.Or(apimeta.FindStatusCondition(now.Policy.Status.Conditions, name), &metav1.Condition{})
}

// ofCRD reports whether the status of the policy is of the CRD, and current whether it is of its spec too.
func (now Observation) ofCRD() bool {
	is := now.Policy.Status.CRD
	return is != nil && is.UID == now.CRD.UID && is.Generation == now.CRD.Generation
}

func (now Observation) current() bool {
	return now.ofCRD() && now.Policy.Status.ObservedGeneration == now.Policy.Generation
}

// safeToRemove reports whether the status of the policy says so of a version.
func (now Observation) safeToRemove(version string) bool {
	return slices.ContainsFunc(now.Policy.Status.Versions, func(is v1alpha1.VersionStatus) bool { return is.Name == version && is.SafeToRemove })
}

// StillPruned returns Pruned until no object is stored at a pruned version: then, prunings by the operator
// need evidence again.
func (now Observation) StillPruned() int64 {
	if slices.ContainsFunc(now.Stored, func(is Stored) bool { return !now.lists(is.Version) }) {
		return now.Pruned
	}
	return 0
}

// named returns the ruleset that the CRD names, at a Service of the operator; empty if there is none.
func (now Observation) named() ruleset {
	is := observed.WebhookService(&now.CRD)
	if is == nil || is.Path == nil || is.Name != names.Child(now.CRD.Name) && names.FleetOf(is.Name) == "" {
		return ruleset{}
	}
	return ruleset{is.Name, path.Base(*is.Path)}
}

// String returns the expected and the observed state, for people.
func (now Observation) String() string {
	text, _ := yaml.Marshal(map[string]any{
		"expected": map[string]any{"versions": describe(&now.Subject.CRD), "policy": now.Subject.Policy, "objects": now.Subject.Objects, "instance": now.Subject.instance()},
		"observed": map[string]any{"versions": describe(&now.CRD), "ruleset": now.named(), "rulesets": now.Rulesets, "storedVersions": now.CRD.Status.StoredVersions, "pruned": now.Pruned,
			"policy": now.Policy.Status, "fleet": now.Fleet.Status, "records": now.Records, "objects": now.Stored, "pods": now.Pods},
	})
	return now.Subject.Name + ":\n" + string(text)
}

// describe returns what authors set of the versions of a CRD.
func describe(crd *apiextensionsv1.CustomResourceDefinition) (all []string) {
	for _, is := range crd.Spec.Versions {
		all = append(all, fmt.Sprintf("%s (served: %t, storage: %t, deprecated: %t)", is.Name, is.Served, is.Storage, is.Deprecated))
	}
	return all
}

// observer makes an observation. After a failed request, it sends no other.
type observer struct {
	*Observation
	client client.Reader
	err    error
}

// observe observes a subject. An error means that a request failed, or that the CRD changed meanwhile.
func (p *player) observe(ctx context.Context, s Step, subject *Subject) (Observation, error) {
	o := &observer{&Observation{Time: time.Now(), Subject: subject, State: s.After, Pruned: p.pruned[subject.Name]}, p.cluster, nil}
	// The policy is read before the bytes that its status describes.
	o.get(ctx, crdOf(subject.Name), &o.CRD)
	o.get(ctx, crdOf(subject.Name), &o.Policy)
	o.observeChildren(ctx)
	o.get(ctx, subject.Fleet, &o.Fleet)
	o.observeBytes(ctx)
	o.observeReads(ctx)
	o.observePods(ctx)
	after := &apiextensionsv1.CustomResourceDefinition{}
	o.get(ctx, crdOf(subject.Name), after)
	if o.err == nil && after.ResourceVersion != o.CRD.ResourceVersion {
		o.err = fmt.Errorf("%s changed while it was observed", crdOf(subject.Name))
	}
	return *o.Observation, o.err
}

// get reads an object, which stays empty if it has no name or does not exist.
func (o *observer) get(ctx context.Context, name string, object client.Object) {
	if o.err == nil && name != "" {
		o.err = client.IgnoreNotFound(o.client.Get(ctx, client.ObjectKey{Name: name}, object))
	}
}

func (o *observer) list(ctx context.Context, list client.ObjectList, options ...client.ListOption) {
	if o.err == nil {
		o.err = o.client.List(ctx, list, options...)
	}
}

// childKinds are the kinds that the operator creates, and those that Kubernetes creates for them.
var childKinds = []string{"Job.v1.batch", "Deployment.v1.apps", "PodDisruptionBudget.v1.policy",
	"Service.v1.", "ConfigMap.v1.", "Secret.v1.", "ServiceAccount.v1.", "Pod.v1.",
	"Role.v1.rbac.authorization.k8s.io", "RoleBinding.v1.rbac.authorization.k8s.io",
	"ClusterRole.v1.rbac.authorization.k8s.io", "ClusterRoleBinding.v1.rbac.authorization.k8s.io",
	"FlowSchema.v1.flowcontrol.apiserver.k8s.io", "ValidatingWebhookConfiguration.v1.admissionregistration.k8s.io"}

// observeChildren lists the objects of a subject in the whole cluster, and reads the records of migrations, and which
// rulesets of the policy are stored, also in the ConfigMaps of fleets.
func (o *observer) observeChildren(ctx context.Context) {
	own := instanceOf(o.Subject.Name)
	for _, name := range childKinds {
		list := &unstructured.UnstructuredList{}
		kind, _ := schema.ParseKindArg(name)
		list.SetGroupVersionKind(*kind)
		o.list(ctx, list, client.HasLabels{names.InstanceLabel})
		for _, item := range list.Items {
			instance := item.GetLabels()[names.InstanceLabel]
			rulesets, _, _ := unstructured.NestedMap(item.Object, "binaryData")
			for key := range rulesets {
				if hash, is := conversion.StoredHash(key); is && key == conversion.StoredName(own, hash) {
					o.Rulesets = append(o.Rulesets, ruleset{instance, hash})
				}
			}
			if instance != own {
				continue
			}
			o.Children = append(o.Children, item)
			if text, found, _ := unstructured.NestedString(item.Object, "data", contract.RecordKey); found {
				record, err := contract.ParseRecord([]byte(text))
				o.Records, o.err = append(o.Records, record), errors.Join(o.err, err)
			}
		}
	}
}

// observeBytes reads etcd.
func (o *observer) observeBytes(ctx context.Context) {
	entries, _, err := etcd.Client(os.Getenv(scenarios.EndpointVariable)).List(ctx, "/registry/"+groupOf(o.Subject.Name)+"/crontabs/")
	o.err = errors.Join(o.err, err)
	for _, entry := range entries {
		object := &metav1.PartialObjectMetadata{}
		o.err = errors.Join(o.err, json.Unmarshal(entry.Value, object))
		o.Stored = append(o.Stored, Stored{object.Name, path.Base(object.APIVersion), entry.ModRevision, object.Annotations})
	}
}

// observeReads lists all objects in every served version.
func (o *observer) observeReads(ctx context.Context) {
	for _, version := range o.Subject.served() {
		_, list := object{o.Subject.Name, "", version}.empty()
		err, missing := o.client.List(ctx, list), maps.Clone(o.Subject.Objects)
		for _, item := range list.Items {
			delete(missing, item.GetName())
			o.Reads = append(o.Reads, read{object{o.Subject.Name, item.GetName(), version}, item.Object["spec"], nil})
		}
		for name := range missing {
			o.Reads = append(o.Reads, read{object{o.Subject.Name, name, version}, nil, cmp.Or(err, errors.New("it is not listed"))})
		}
	}
}

// observePods observes the pods that the CRD names, or those that the policy wants.
func (o *observer) observePods(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	service := o.named().Instance
	instance, all := cmp.Or(service, o.Subject.instance()), &corev1.PodList{}
	o.list(ctx, all, client.InNamespace(system), client.MatchingLabels{names.ComponentLabel: names.ConverterComponent, names.InstanceLabel: instance})
	for _, each := range all.Items {
		is := pod{Name: each.Name, Ready: each.DeletionTimestamp == nil && node.IsReady(&each)}
		if service != "" && is.Ready {
			found, err := probe.Pod(ctx, probe.Target{Address: net.JoinHostPort(each.Status.PodIP, strconv.Itoa(workload.ContainerPort)),
				ServerName: names.ServiceName(instance, system), CABundle: observed.Cluster{CRD: &o.CRD}.ActiveCABundle()})
			is.Result = found
			is.Refused, _ = errors.AsType[*probe.Error](err)
		}
		o.Pods = append(o.Pods, is)
	}
}
