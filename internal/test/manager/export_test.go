//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/webhook/probe"
)

// exported is a converter that a project ships. It runs in a namespace without the operator, and the operator has
// nothing to do with it until there is a policy.
type exported struct {
	group, crd, namespace, folder string
	authority                     pki.KeyPair
}

const exportedName = "crontabs-converter"

// TestExport installs an exported converter, changes its rules and its certificate, has a policy take over and give
// back, and uninstalls it. Meanwhile no read through it fails.
func TestExport(t *testing.T) {
	t.Parallel()
	authority, err := pki.NewAuthority("of the chart", time.Now(), 24*time.Hour)
	expect.NoError(t, err)
	e := exported{group: "exported.example.com", crd: "crontabs.exported.example.com", namespace: "exported", folder: t.TempDir(), authority: authority}
	expect.NoError(t, cluster.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.namespace}}))
	expect.NoError(t, cluster.Create(t.Context(), e.issue(t)))

	job := e.export(t, "first", "")
	e.apply(t, "first/converter.yaml")
	e.kubectl(t, "wait", "-n", e.namespace, "job/"+job, "--for=condition=Complete", "--timeout=2m")
	// The injector of cert-manager writes caBundle.
	e.apply(t, "first/crd.yaml")
	e.kubectl(t, "wait", "crd/"+e.crd, "--for=condition=Established", "--timeout=1m")
	patch(t, getCRD(t, e.crd), `{"spec":{"conversion":{"webhook":{"clientConfig":{"caBundle":"`+base64.StdEncoding.EncodeToString(authority.Certificate)+`"}}}}}`)
	createCronTab(t, e.group, "v1beta1", "cron", "a.example.com:1")
	expect.Eventually(t, "the converter is called", func() (bool, string) {
		_, err := read(t, e.group, "v1", "cron")
		return err == nil, fmt.Sprint(err)
	})
	e.checkRights(t)
	reader := startReading(t, e.group)

	e.upgrade(t)
	e.renew(t)
	path := e.path(t)
	e.takeOver(t)
	e.giveBack(t, path)
	expect.NoError(t, reader.Check())
	e.uninstall(t)
}

// export writes the manifests into a folder, and returns the name of the Job that checks the pods.
func (e exported) export(t *testing.T, to, overflow string, more ...string) (job string) {
	t.Helper()
	policy := fmt.Sprintf(`apiVersion: conversion-operator.io/v1alpha1
kind: ConversionPolicy
metadata: {name: %s}
spec: {converter: {type: Declarative, declarative: {hub: v1, %s spokes: [{version: v1beta1, rules: [{format: {from: .hostPort, template: "{host}:{port}", to: {host: .host, port: .port}}}]}]}}}
`, e.crd, overflow)
	crd := manifest(t, e.group, "v1beta1", "v1")
	crd.APIVersion, crd.Kind = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
	text, err := yaml.Marshal(crd)
	expect.NoError(t, err)
	file := filepath.Join(e.folder, to+".yaml")
	expect.NoError(t, os.WriteFile(file, []byte(policy+"---\n"+string(text)), 0o600))
	said := command(t, 0, append([]string{"export", "--policy=" + file, "--folder=" + filepath.Join(e.folder, to), "--namespace=" + e.namespace, "--image=" + operatorImage}, more...)...)
	_, job, _ = strings.Cut(said, " job/")
	job, _, _ = strings.Cut(job, " ")
	return job
}

// apply applies a file like a user, without what cert-manager serves.
func (e exported) apply(t *testing.T, file string, flags ...string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(e.folder, file))
	expect.NoError(t, err)
	var known []string
	for document := range strings.SplitSeq(string(text), "---\n") {
		if !strings.Contains(document, "apiVersion: cert-manager.io/") {
			known = append(known, document)
		}
	}
	path := filepath.Join(t.TempDir(), "known.yaml")
	expect.NoError(t, os.WriteFile(path, []byte(strings.Join(known, "---\n")), 0o600))
	e.kubectl(t, append([]string{"apply", "-f", path}, flags...)...)
}

func (e exported) kubectl(t *testing.T, args ...string) {
	t.Helper()
	if _, stderr, err := kubectl(args...); err != nil {
		said, _ := io.ReadAll(stderr)
		t.Fatalf("kubectl %v: %v\n%s", args, err, said)
	}
}

// issue returns the Secret that cert-manager writes, with another certificate each time.
func (e exported) issue(t *testing.T) *corev1.Secret {
	t.Helper()
	leaf, err := pki.IssueLeaf(e.authority, names.ServiceName(exportedName, e.namespace), time.Now(), time.Hour)
	expect.NoError(t, err)
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: exportedName + "-tls"}, Data: map[string][]byte{
		corev1.TLSCertKey: leaf.Certificate, corev1.TLSPrivateKeyKey: leaf.Key, observed.CAKey: e.authority.Certificate}}
}

// checkRights: with the roles for the Job that migrates, it has all the rights that it needs.
func (e exported) checkRights(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(e.folder, "first/migrate.yaml"))
	expect.NoError(t, err)
	roles, _, _ := strings.Cut(string(text), "---\napiVersion: batch/v1")
	expect.NoError(t, os.WriteFile(filepath.Join(e.folder, "roles.yaml"), []byte(roles), 0o600))
	e.apply(t, "roles.yaml")
	command(t, 0, "migrate", e.crd, "--dry-run", "--record-namespace="+e.namespace, "--kubeconfig="+server.KubeconfigFile(t),
		"--as=system:serviceaccount:"+e.namespace+":"+exportedName+"-migrate")
}

// path is the path of the webhook, which names the ruleset.
func (e exported) path(t *testing.T) string {
	t.Helper()
	return *observed.WebhookService(getCRD(t, e.crd)).Path
}

// upgrade changes the rules: pods load them, are not replaced, and are checked, before the CustomResourceDefinition names them.
func (e exported) upgrade(t *testing.T) {
	t.Helper()
	before, pods := e.path(t), e.pods(t)
	job := e.export(t, "second", "overflow: Drop,", "--previous="+filepath.Join(e.folder, "first"))
	e.apply(t, "second/converter.yaml")
	e.refresh(t)
	e.kubectl(t, "wait", "-n", e.namespace, "job/"+job, "--for=condition=Complete", "--timeout=2m")
	expect.Equal(t, "the path before the definition is applied", before, e.path(t))
	e.apply(t, "second/crd.yaml")
	expect.Equal(t, "the path is another one", true, e.path(t) != before)
	expect.Equal(t, "pods", fmt.Sprint(pods), fmt.Sprint(e.pods(t)))
}

// refresh makes kubelets write mounted files at once, instead of within a minute.
func (e exported) refresh(t *testing.T) {
	t.Helper()
	e.kubectl(t, "annotate", "pods", "-n", e.namespace, "-l", names.ComponentLabel+"="+names.ConverterComponent, "--overwrite", "refreshed="+time.Now().Format("150405"))
}

// pods are the addresses of the converter pods, by name.
func (e exported) pods(t *testing.T) map[string]string {
	t.Helper()
	list, found := &corev1.PodList{}, map[string]string{}
	expect.NoError(t, cluster.List(t.Context(), list, client.InNamespace(e.namespace), client.MatchingLabels{names.ComponentLabel: names.ConverterComponent}))
	for i := range list.Items {
		found[list.Items[i].Name] = net.JoinHostPort(list.Items[i].Status.PodIP, "9443")
	}
	expect.Equal(t, "pods", 2, len(found))
	return found
}

// renew: pods serve a renewed certificate without a restart.
func (e exported) renew(t *testing.T) {
	t.Helper()
	renewed := e.issue(t) // seconds after the first, so that it ends later
	expect.NoError(t, cluster.Update(t.Context(), renewed))
	e.refresh(t)
	want, err := pki.ParseCertificate(renewed.Data[corev1.TLSCertKey])
	expect.NoError(t, err)
	for name, address := range e.pods(t) {
		expect.Eventually(t, name+" serves the renewed certificate", func() (bool, string) {
			until, err := probe.Handshake(t.Context(), probe.OwnTarget{Address: address, CABundle: e.authority.Certificate, ServerName: names.ServiceName(exportedName, e.namespace)})
			return err == nil && until.Equal(want.NotAfter), fmt.Sprint(until, err)
		})
	}
}

// takeOver: a policy points the CustomResourceDefinition at the operator's converter, once nothing injects caBundle.
func (e exported) takeOver(t *testing.T) {
	t.Helper()
	createPolicy(t, e.group, nil)
	waitFor(t, e.crd, v1alpha1.ConversionConfiguredCondition, metav1.ConditionFalse, v1alpha1.ReasonForeignConversion, []string{"cert-manager.io/inject-ca-from"})
	e.kubectl(t, "annotate", "crd", e.crd, "cert-manager.io/inject-ca-from-")
	waitFor(t, e.crd, v1alpha1.ConversionConfiguredCondition, metav1.ConditionTrue, v1alpha1.ReasonConfigured, nil)
	service := observed.WebhookService(getCRD(t, e.crd))
	expect.Equal(t, "namespace of the converter", system, service.Namespace)
}

// giveBack: without the policy, one write points the CustomResourceDefinition at the converter of the chart again.
func (e exported) giveBack(t *testing.T, path string) {
	t.Helper()
	patch(t, getPolicy(t, e.crd), `{"spec":{"deletionPolicy":"Orphan"}}`)
	expect.NoError(t, cluster.Delete(t.Context(), getPolicy(t, e.crd)))
	waitGone(t, e.crd, &v1alpha1.ConversionPolicy{})
	service := fmt.Sprintf(`{"namespace":%q,"name":%q,"path":%q}`, e.namespace, exportedName, path)
	patch(t, getCRD(t, e.crd), `{"spec":{"conversion":{"webhook":{"clientConfig":{"caBundle":"`+base64.StdEncoding.EncodeToString(e.authority.Certificate)+`","service":`+service+`}}}}}`)
	e.apply(t, "second/crd.yaml", "--server-side", "--force-conflicts")
}

// uninstall removes the CustomResourceDefinition with its objects, which needs the converter, and then the converter.
func (e exported) uninstall(t *testing.T) {
	t.Helper()
	e.kubectl(t, "delete", "-f", filepath.Join(e.folder, "second/crd.yaml"), "--timeout=1m")
	e.kubectl(t, "delete", "deployment,service,pdb,networkpolicy,configmap,serviceaccount,job", "-n", e.namespace, "-l", names.InstanceLabel+"="+exportedName)
}
