//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
	converter "github.com/conversion-operator/conversion-operator/internal/webhook/pod"
)

// The test's own program plays those of an image: a pod that uses its ServiceAccount, and beside it the converter.
func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case "converter":
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		err := converter.Run(ctx, os.Args[1:], os.Stderr)
		stop()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	case "account":
		if err := useAccount(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// useAccount reads what the pod's role allows, and is refused the rest.
func useAccount(ctx context.Context) error {
	kubeconfig, err := config.GetConfig()
	if err != nil {
		return err
	}
	api, err := kubernetes.NewForConfig(kubeconfig)
	if err != nil {
		return err
	}
	if _, err := api.CoreV1().ConfigMaps("default").Get(ctx, "readable", metav1.GetOptions{}); err != nil {
		return err
	}
	if _, err := api.CoreV1().Secrets("default").Get(ctx, "tls", metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		return fmt.Errorf("reading a Secret: %w", err)
	}
	return nil
}

const objects = `
apiVersion: v1
kind: Service
metadata: {name: converter, namespace: default}
spec: {selector: {app: converter}, ports: [{name: https, port: 443, targetPort: https}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: converter, namespace: default}
spec:
  replicas: 2
  selector: {matchLabels: {app: converter}}
  template:
    metadata: {labels: {app: converter}}
    spec:
      terminationGracePeriodSeconds: 60
      # As soon as the node is lost.
      tolerations:
      - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 0}
      topologySpreadConstraints:
      - {topologyKey: kubernetes.io/hostname, maxSkew: 1, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: converter}}}
      containers:
      - name: converter
        image: localhost/test:dev
        command: [/converter]
        args: [--shared, --rulesets=/etc/rulesets, --certificates=/etc/tls, "--bind-address=:9443", "--metrics-bind-address=:8080", --drain=2s]
        ports: [{name: https, containerPort: 9443}]
        readinessProbe: {httpGet: {scheme: HTTPS, path: /readyz, port: https}, periodSeconds: 1}
        livenessProbe: {httpGet: {scheme: HTTPS, path: /healthz, port: https}}
        volumeMounts: [{name: rulesets, mountPath: /etc/rulesets}, {name: tls, mountPath: /etc/tls}]
      volumes:
      - {name: rulesets, projected: {sources: [{configMap: {name: rulesets, optional: true}}]}}
      - {name: tls, secret: {secretName: tls}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: readable, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: default}
rules: [{apiGroups: [""], resources: [configmaps], resourceNames: [readable], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: ServiceAccount, name: default, namespace: default}]
---
apiVersion: batch/v1
kind: Job
metadata: {name: account, namespace: default}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers: [{name: account, image: localhost/test:dev}]
---
apiVersion: v1
kind: Pod
metadata: {name: unknown, namespace: default}
spec: {containers: [{name: unknown, image: localhost/unknown:dev}]}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crontabs.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: crontabs, kind: CronTab}
  versions:
  - {name: v1, served: true, storage: true, schema: &any {openAPIV3Schema: {type: object}}}
  - {name: v2, served: true, storage: false, schema: *any}
  conversion:
    strategy: Webhook
    webhook: {conversionReviewVersions: [v1], clientConfig: {service: {namespace: default, name: converter, path: /none}, caBundle: CA}}
---
apiVersion: example.com/v1
kind: CronTab
metadata: {name: one, namespace: default}
`

// suite is a cluster with two nodes, and a Deployment of converter pods.
type suite struct {
	*testenv.Cluster
	authority pki.KeyPair
}

func (s *suite) pods(t *testing.T) (pods []corev1.Pod) {
	list := &corev1.PodList{}
	expect.NoError(t, s.Client.List(t.Context(), list, client.InNamespace("default"), client.MatchingLabels{"app": "converter"}))
	return list.Items
}

// ready waits until the Deployment has two ready pods.
func (s *suite) ready(t *testing.T) {
	t.Helper()
	deployment := &appsv1.Deployment{}
	expect.Eventually(t, "two pods are ready", func() (bool, string) {
		err := s.Client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "converter"}, deployment)
		return err == nil && deployment.Status.ReadyReplicas == 2, fmt.Sprint(deployment.Status, err)
	})
}

// secret has a new serving certificate.
func (s *suite) secret(t *testing.T) (*corev1.Secret, pki.KeyPair) {
	t.Helper()
	leaf, err := pki.IssueLeaf(s.authority, "converter.default.svc", time.Now(), time.Hour)
	expect.NoError(t, err)
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "tls"},
		Data: map[string][]byte{corev1.TLSCertKey: leaf.Certificate, corev1.TLSPrivateKeyKey: leaf.Key}}, leaf
}

// TestNodes runs a real Deployment through the life of its pods.
func TestNodes(t *testing.T) {
	program, err := os.Executable()
	expect.NoError(t, err)
	image := t.TempDir()
	for _, name := range []string{"account", "converter"} {
		expect.NoError(t, os.Symlink(program, filepath.Join(image, name)))
	}
	cluster, err := testenv.StartCluster(t.Context(), testenv.Options{}, map[string]string{"localhost/test:dev": filepath.Join(image, "account")}, []string{"a", "b"},
		"--node-monitor-period=1s", "--node-monitor-grace-period=5s")
	expect.NoError(t, err)
	t.Cleanup(func() { expect.NoError(t, cluster.Stop()) })
	s := &suite{Cluster: cluster}
	s.authority, err = pki.NewAuthority("test", time.Now(), time.Hour)
	expect.NoError(t, err)
	secret, _ := s.secret(t)
	expect.NoError(t, s.Client.Create(t.Context(), secret))
	for text := range strings.SplitSeq(strings.ReplaceAll(objects, "caBundle: CA", "caBundle: "+base64.StdEncoding.EncodeToString(s.authority.Certificate)), "---\n") {
		object := &unstructured.Unstructured{}
		expect.NoError(t, yaml.Unmarshal([]byte(text), object))
		expect.Success(t, "create "+object.GetKind(), func(ctx context.Context) error { return client.IgnoreAlreadyExists(s.Client.Create(ctx, object)) })
	}
	s.ready(t)

	t.Run("an unknown image", s.unknownImage)
	t.Run("an account", s.account)
	t.Run("a webhook", s.webhook)
	t.Run("a changed Secret", s.changedSecret)
	t.Run("a killed process", s.killedProcess)
	t.Run("a deleted pod", s.deletedPod)
	t.Run("a lost node", s.lostNode)
}

func (s *suite) unknownImage(t *testing.T) {
	pod := &corev1.Pod{}
	expect.Eventually(t, "the pod waits for its image", func() (bool, string) {
		err := s.Client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "unknown"}, pod)
		statuses := pod.Status.ContainerStatuses
		return err == nil && pod.Status.Phase == corev1.PodPending && len(statuses) == 1 && statuses[0].State.Waiting.Reason == "ErrImagePull", fmt.Sprint(statuses, err)
	})
}

// account: a Job succeeds whose pod has the rights of its ServiceAccount, and no others.
func (s *suite) account(t *testing.T) {
	job := &batchv1.Job{}
	expect.Eventually(t, "the Job succeeds", func() (bool, string) {
		err := s.Client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "account"}, job)
		return err == nil && job.Status.Succeeded == 1, fmt.Sprint(job.Status, err)
	})
}

// webhook: the API server reaches a pod through the Service, and gets its answer.
func (s *suite) webhook(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v2", "kind": "CronTab"}}
	err := s.Client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "one"}, object)
	expect.Contains(t, "the converter's answer", fmt.Sprint(err), "could not find the requested resource")
}

// changedSecret: each pod serves the new certificate, after an annotation of the pod has the node look.
func (s *suite) changedSecret(t *testing.T) {
	secret, leaf := s.secret(t)
	expect.NoError(t, s.Client.Update(t.Context(), secret))
	want, err := pki.ParseCertificate(leaf.Certificate)
	expect.NoError(t, err)
	for _, pod := range s.pods(t) {
		changed := pod.DeepCopy()
		changed.Annotations = map[string]string{"changed": "yes"}
		expect.NoError(t, s.Client.Patch(t.Context(), changed, client.MergeFrom(&pod)))
		expect.Success(t, "the new certificate", func(context.Context) error {
			connection, err := tls.Dial("tcp", pod.Status.PodIP+":9443", &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // it is compared below
			if err != nil {
				return err
			}
			defer connection.Close()
			if !connection.ConnectionState().PeerCertificates[0].Equal(want) {
				return errors.New("it is another one")
			}
			return nil
		})
	}
}

// killedProcess: the container is started again, and its pod is ready again.
func (s *suite) killedProcess(t *testing.T) {
	pod := s.pods(t)[0]
	pid, err := strconv.Atoi(strings.TrimPrefix(pod.Status.ContainerStatuses[0].ContainerID, "process://"))
	expect.NoError(t, err)
	expect.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	expect.Eventually(t, "the container was started again", func() (bool, string) {
		err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(&pod), &pod)
		status := pod.Status.ContainerStatuses[0]
		last := status.LastTerminationState.Terminated
		return err == nil && status.RestartCount == 1 && status.Ready && last != nil && last.ExitCode == 128+9, fmt.Sprint(status, err)
	})
}

// deletedPod: the process drains and ends by itself, while another pod replaces it.
func (s *suite) deletedPod(t *testing.T) {
	pod := s.pods(t)[0]
	watching, err := s.Client.Watch(t.Context(), &corev1.PodList{}, client.InNamespace("default"), client.MatchingFields{"metadata.name": pod.Name})
	expect.NoError(t, err)
	defer watching.Stop()
	deleted := time.Now()
	expect.NoError(t, s.Client.Delete(t.Context(), &pod))
	var last *corev1.ContainerStateTerminated
	for event := range watching.ResultChan() {
		seen := event.Object.(*corev1.Pod)
		last = seen.Status.ContainerStatuses[0].State.Terminated
		if event.Type == watch.Deleted {
			break
		}
	}
	if drained := time.Since(deleted); last == nil || last.ExitCode != 0 || drained < 2*time.Second || drained > 50*time.Second {
		t.Errorf("the pod was gone after %s, with %v; want some seconds, with exit code 0", drained, last)
	}
	s.ready(t)
}

// lostNode: nothing runs on a node that was killed, and its pods are replaced on the other one.
func (s *suite) lostNode(t *testing.T) {
	pods := s.pods(t)
	lost := pods[0].Spec.NodeName
	s.Nodes.Node(lost).Kill()
	expect.Eventually(t, "two ready pods run on the other node", func() (bool, string) {
		ready := 0
		for _, pod := range s.pods(t) {
			for _, condition := range pod.Status.Conditions {
				if pod.Spec.NodeName != lost && pod.DeletionTimestamp == nil && condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
					ready++
				}
			}
		}
		return ready == 2, fmt.Sprint(ready)
	})
	for _, pod := range pods {
		connection, err := net.DialTimeout("tcp", pod.Status.PodIP+":9443", time.Second)
		if (err != nil) != (pod.Spec.NodeName == lost) {
			t.Errorf("a pod of node %s answers on its port: %v", pod.Spec.NodeName, err)
		}
		if err == nil {
			expect.NoError(t, connection.Close())
		}
	}
}
