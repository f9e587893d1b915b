// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/pki"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/plan/workload"
	"github.com/conversion-operator/conversion-operator/internal/webhook/probe"
)

// system is the operator's namespace.
const system = "conversion-system"

// child is an object that the operator created for a subject.
type child struct {
	Kind, Name string
	// Run is the migration of the object, if any.
	Run string
	// Active is true for a Job with active pods.
	Active bool
}

func (c child) String() string { return c.Kind + " " + c.Name }

// childKinds are the kinds that the operator creates, and the kinds that Kubernetes creates for
// them.
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

// observeChildren lists the objects of a subject in the whole cluster by their label, and reads the
// records of migrations.
func (p *player) observeChildren(ctx context.Context, now *observation) error {
	var records []string
	for _, kind := range childKinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		err := p.cluster.List(ctx, list, client.MatchingLabels{names.InstanceLabel: names.Child(crdOf(now.Subject.Name))})
		if err != nil {
			return err
		}
		for _, item := range list.Items {
			pods, _, _ := unstructured.NestedInt64(item.Object, "status", "active")
			now.Children = append(now.Children, child{kind.Kind, item.GetName(), item.GetLabels()[names.RunLabel], kind.Kind == "Job" && pods > 0})
			record, found, _ := unstructured.NestedString(item.Object, "data", contract.RecordKey)
			if found && kind.Kind == "ConfigMap" {
				records = append(records, record)
			}
		}
	}
	var err error
	now.Records, err = sortedRecords(records)
	return err
}

// observeMounted reads the certificate in the Secret that converter pods mount.
func (p *player) observeMounted(ctx context.Context, now *observation) error {
	secret := &corev1.Secret{}
	found, err := p.find(ctx, client.ObjectKey{Namespace: system, Name: servingSecret(now.Subject)}, secret)
	if err != nil || !found || len(secret.Data[corev1.TLSCertKey]) == 0 {
		return err
	}
	certificate, err := pki.ParseCertificate(secret.Data[corev1.TLSCertKey])
	if err != nil {
		return err
	}
	now.Mounted = certificate.NotAfter
	return nil
}

// podObservation is a converter pod, and the certificate that it serves.
type podObservation struct {
	Name     string
	Ready    bool
	NotAfter time.Time
	// Rulesets are the hashes of the rulesets that it serves.
	Rulesets []string
	// Trusted is true if caBundle verifies the certificate, as it was before or after the
	// connection.
	Trusted bool
	// Err is the error of the connection, and Refused that of one which verifies the certificate.
	Err, Refused string
}

// observePods gets the certificate of each converter pod as API servers do, and then reads caBundle
// again. The pods are those that the CRD names, or those that the policy wants.
func (p *player) observePods(ctx context.Context, now *observation, before *apiextensionsv1.CustomResourceDefinition) error {
	place := now.Service
	if place == "" {
		place = service(now.Subject)
	}
	pods := &corev1.PodList{}
	err := p.cluster.List(ctx, pods, client.InNamespace(system), client.MatchingLabels{
		names.ComponentLabel: names.ConverterComponent, names.InstanceLabel: place})
	if err != nil || !now.Defined {
		return err
	}
	served := map[string]*x509.Certificate{}
	for _, pod := range pods.Items {
		asked := podObservation{Name: pod.Name, Ready: isReady(pod)}
		if asked.Ready {
			certificate, err := askPod(ctx, pod.Status.PodIP, names.ServiceName(place, system))
			if err != nil {
				asked.Err = err.Error()
			} else {
				asked.NotAfter, served[pod.Name] = certificate.NotAfter, certificate
			}
			if now.Active && err == nil {
				asked.Rulesets, err = askRulesets(ctx, pod.Status.PodIP, names.ServiceName(place, system), webhookOf(before).CABundle)
				asked.Refused = fmt.Sprint(err)
			}
		}
		now.Pods = append(now.Pods, asked)
	}
	after := &apiextensionsv1.CustomResourceDefinition{}
	if _, err := p.find(ctx, client.ObjectKeyFromObject(before), after); err != nil {
		return err
	}
	for i, pod := range now.Pods {
		certificate := served[pod.Name]
		now.Pods[i].Trusted = certificate != nil && (verifies(before, certificate, place) || verifies(after, certificate, place))
	}
	return nil
}

func isReady(pod corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
	})
}

// askPod connects to a pod, and returns its certificate unverified.
func askPod(ctx context.Context, address, serverName string) (*x509.Certificate, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	dialer := tls.Dialer{Config: &tls.Config{ServerName: serverName, InsecureSkipVerify: true}} //nolint:gosec // it is verified afterwards, against two bundles
	connection, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(address, strconv.Itoa(workload.ContainerPort)))
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	over, ok := connection.(*tls.Conn)
	if !ok || len(over.ConnectionState().PeerCertificates) == 0 {
		return nil, fmt.Errorf("%s shows no certificate", address)
	}
	return over.ConnectionState().PeerCertificates[0], nil
}

// askRulesets returns the hashes of the rulesets that a pod serves.
func askRulesets(ctx context.Context, address, serverName string, caBundle []byte) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	result, err := probe.Pod(ctx, probe.Target{Address: net.JoinHostPort(address, strconv.Itoa(workload.ContainerPort)), CABundle: caBundle, ServerName: serverName})
	return result.RulesetHashes, err
}

// verifies reports whether API servers that read this CRD accept the certificate.
func verifies(crd *apiextensionsv1.CustomResourceDefinition, certificate *x509.Certificate, service string) bool {
	webhook := webhookOf(crd)
	if webhook == nil {
		return false
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(webhook.CABundle)
	_, err := certificate.Verify(x509.VerifyOptions{Roots: roots, DNSName: names.ServiceName(service, system)})
	return err == nil
}
