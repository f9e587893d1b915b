// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/pki"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/plan/workload"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
	"github.com/conversion-operator/conversion-operator/internal/webhook/probe"
)

const (
	// system is the operator's namespace.
	system = "conversion-system"
	// podTimeout bounds requests to a pod that hangs.
	podTimeout = 5 * time.Second
)

// observe observes all subjects. An error means that a request failed.
func (p *player) observe(ctx context.Context, s Step) (map[string]Observation, error) {
	all := map[string]Observation{}
	for _, subject := range s.After {
		now := Observation{Time: time.Now(), Subject: subject, Pruned: p.pruned[subject.Name]}
		crd, policy := &apiextensionsv1.CustomResourceDefinition{}, &v1alpha1.ConversionPolicy{}
		key := client.ObjectKey{Name: crdOf(subject.Name)}
		defined, err := p.find(ctx, key, crd)
		if defined {
			now.CRD = crd
		}
		// The policy is read before the bytes that its status describes.
		exists, policyErr := p.find(ctx, key, policy)
		if exists {
			now.Policy = policy
		}
		err = errors.Join(err, policyErr, p.observeChildren(ctx, &now), p.observeFleet(ctx, s, &now),
			p.observeMounted(ctx, &now), p.observeBytes(ctx, &now), p.observeReads(ctx, &now), p.observePods(ctx, &now))
		if err != nil {
			return nil, fmt.Errorf("observe %s: %w", subject.Name, err)
		}
		all[subject.Name] = now
	}
	return all, nil
}

// find reads an object that may not exist.
func (p *player) find(ctx context.Context, key client.ObjectKey, object client.Object) (bool, error) {
	err := p.cluster.Get(ctx, key, object)
	return err == nil, client.IgnoreNotFound(err)
}

// childKinds are the kinds that the operator creates, and those that Kubernetes creates for them.
var childKinds = []schema.GroupVersionKind{
	{Group: "batch", Version: "v1", Kind: "Job"},
	{Group: "apps", Version: "v1", Kind: "Deployment"},
	{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
	{Version: "v1", Kind: "Service"},
	{Version: "v1", Kind: "ConfigMap"},
	{Version: "v1", Kind: "Secret"},
	{Version: "v1", Kind: "ServiceAccount"},
	{Version: "v1", Kind: "Pod"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"},
	{Group: "flowcontrol.apiserver.k8s.io", Version: "v1", Kind: "FlowSchema"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"},
}

// children lists the objects with an instance label in the whole cluster.
func (p *player) children(ctx context.Context, instance string) ([]unstructured.Unstructured, error) {
	var all []unstructured.Unstructured
	for _, kind := range childKinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := p.cluster.List(ctx, list, client.MatchingLabels{names.InstanceLabel: instance}); err != nil {
			return nil, err
		}
		all = append(all, list.Items...)
	}
	return all, nil
}

// observeChildren lists the objects of a subject, and reads the records of migrations.
func (p *player) observeChildren(ctx context.Context, now *Observation) error {
	all, err := p.children(ctx, names.Child(crdOf(now.Subject.Name)))
	for _, item := range all {
		pods, _, _ := unstructured.NestedInt64(item.Object, "status", "active")
		now.Children = append(now.Children, child{item.GetKind(), item.GetName(), item.GetLabels()[names.RunLabel], item.GetKind() == "Job" && pods > 0})
		if text, found, _ := unstructured.NestedString(item.Object, "data", contract.RecordKey); found {
			record, parseErr := contract.ParseRecord([]byte(text))
			now.Records, err = append(now.Records, record), errors.Join(err, parseErr)
		}
	}
	return err
}

// observeFleet reads the fleet that the policy uses, and which rulesets of the policy are stored.
func (p *player) observeFleet(ctx context.Context, s Step, now *Observation) error {
	if name := now.Subject.Fleet; name != "" {
		object := &v1alpha1.ConverterFleet{}
		found, err := p.find(ctx, client.ObjectKey{Name: name}, object)
		if err != nil {
			return err
		}
		if found {
			now.Fleet = object
		}
		now.Size = int(s.Fleets[slices.Index(fleetNames, name)].Replicas)
		now.Follow = !slices.ContainsFunc(s.After, func(s Subject) bool { return s.Exists && s.Fleet == name && !s.active() })
	}
	all := &corev1.ConfigMapList{}
	if err := p.cluster.List(ctx, all, client.InNamespace(system), client.HasLabels{names.InstanceLabel}); err != nil {
		return err
	}
	now.Rulesets = map[string][]string{}
	for _, configMap := range all.Items {
		place, own := configMap.Labels[names.InstanceLabel], names.Child(crdOf(now.Subject.Name))
		for _, key := range sortedKeys(configMap.BinaryData) {
			hash, is := conversion.StoredHash(key)
			if owner, _ := conversion.StoredOwner(key); is && (owner == own || place == own) {
				now.Rulesets[place] = append(now.Rulesets[place], hash)
			}
		}
	}
	return nil
}

// observeMounted reads the certificate in the Secret that converter pods mount.
func (p *player) observeMounted(ctx context.Context, now *Observation) error {
	secret := &corev1.Secret{}
	found, err := p.find(ctx, client.ObjectKey{Namespace: system, Name: placeOf(now.Subject).serving}, secret)
	if err != nil || !found || len(secret.Data[corev1.TLSCertKey]) == 0 {
		return err
	}
	certificate, err := pki.ParseCertificate(secret.Data[corev1.TLSCertKey])
	if err == nil {
		now.Mounted = certificate.NotAfter
	}
	return err
}

// observeBytes reads etcd, and the CRD after it.
func (p *player) observeBytes(ctx context.Context, now *Observation) error {
	stored, err := scenarios.ReadStored(ctx, groupOf(now.Subject.Name), "crontabs")
	if err != nil {
		return err
	}
	now.Stored = map[string]Stored{}
	for key, text := range stored.Bytes {
		object := &metav1.PartialObjectMetadata{}
		if err := json.Unmarshal([]byte(text), object); err != nil {
			return err
		}
		preserved, err := preservedIn(object.Annotations, crdOf(now.Subject.Name))
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		_, version, _ := strings.Cut(object.APIVersion, "/")
		now.Stored[strings.TrimPrefix(key, scenarios.Namespace+"/")] = Stored{version, stored.Revisions[key], preserved}
	}
	after := &apiextensionsv1.CustomResourceDefinition{}
	_, err = p.find(ctx, client.ObjectKey{Name: crdOf(now.Subject.Name)}, after)
	now.ListedAfter, now.Conversion = after.Status.StoredVersions, after.Spec.Conversion
	return err
}

// observeReads lists and reads every object in every served version. If the list fails, it skips
// the other reads of that version.
func (p *player) observeReads(ctx context.Context, now *Observation) error {
	now.Reads = map[string]map[string]read{}
	for _, version := range now.Subject.Served {
		all := sortedKeys(now.Subject.Objects)
		reads, objects := make([]read, len(all)), p.objects(now.Subject.Name, version)
		list, err := objects.List(ctx, metav1.ListOptions{})
		if err == nil && len(list.Items) != len(all) {
			return fmt.Errorf("a list at %s has %d objects, want %d", version, len(list.Items), len(all))
		}
		parallel := errgroup.Group{}
		parallel.SetLimit(8)
		for i, name := range all {
			parallel.Go(func() error {
				object, getErr := (*unstructured.Unstructured)(nil), err
				if err == nil {
					object, getErr = objects.Get(ctx, name, metav1.GetOptions{})
				}
				reads[i] = asRead(object, getErr)
				return nil
			})
		}
		_ = parallel.Wait()
		now.Reads[version] = map[string]read{}
		for i, name := range all {
			now.Reads[version][name] = reads[i]
		}
	}
	return nil
}

// observePods connects to each converter pod as API servers do, with caBundle, and if that has changed
// meanwhile with the new one. The pods are those that the CRD names, or those that the policy wants.
func (p *player) observePods(ctx context.Context, now *Observation) error {
	if now.CRD == nil {
		return nil
	}
	service, _ := namedBy(now.CRD)
	instance := service
	if service == "" {
		instance = now.Subject.service()
	}
	pods := &corev1.PodList{}
	err := p.cluster.List(ctx, pods, client.InNamespace(system), client.MatchingLabels{
		names.ComponentLabel: names.ConverterComponent, names.InstanceLabel: instance})
	if err != nil {
		return err
	}
	after := &apiextensionsv1.CustomResourceDefinition{}
	serverName := names.ServiceName(instance, system)
	for _, pod := range pods.Items {
		is := podObservation{Name: pod.Name, Ready: isReady(pod)}
		if is.Ready {
			address := net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(workload.ContainerPort))
			is.NotAfter, err = askPod(ctx, address, serverName)
			if is.Unreachable = err != nil; !is.Unreachable && service != "" {
				is.Rulesets, is.Refused = askRulesets(ctx, address, serverName, now.CRD)
			}
			if untrusted(is.Refused) {
				if _, err := p.find(ctx, client.ObjectKeyFromObject(now.CRD), after); err != nil {
					return err
				}
				is.Rulesets, is.Refused = askRulesets(ctx, address, serverName, after)
			}
		}
		now.Pods = append(now.Pods, is)
	}
	return nil
}

func isReady(pod corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
	})
}

// askPod connects to a pod, and returns when its certificate expires, unverified.
func askPod(ctx context.Context, address, serverName string) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, podTimeout)
	defer cancel()
	var notAfter time.Time
	dialer := tls.Dialer{Config: &tls.Config{ServerName: serverName, InsecureSkipVerify: true, //nolint:gosec // the next connection verifies it
		VerifyConnection: func(state tls.ConnectionState) error {
			notAfter = state.PeerCertificates[0].NotAfter
			return nil
		}}}
	connection, err := dialer.DialContext(ctx, "tcp", address)
	if err == nil {
		_ = connection.Close()
	}
	return notAfter, err
}

// untrusted reports whether a connection failed because caBundle does not verify the certificate.
func untrusted(err error) bool {
	refused, known := errors.AsType[*probe.Error](err)
	return known && refused.Reason == probe.ReasonTLSVerificationFailed
}

// askRulesets connects as API servers do that read this CRD, and returns the hashes of the rulesets that
// a pod serves.
func askRulesets(ctx context.Context, address, serverName string, crd *apiextensionsv1.CustomResourceDefinition) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, podTimeout)
	defer cancel()
	webhook := webhookOf(crd)
	if webhook == nil {
		return nil, nil
	}
	result, err := probe.Pod(ctx, probe.Target{Address: address, CABundle: webhook.CABundle, ServerName: serverName})
	return result.RulesetHashes, err
}
