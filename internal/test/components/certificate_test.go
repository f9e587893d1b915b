// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package components

import (
	"testing"

	cmv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestMetricsCertificate: managers serve cert-manager's certificate, for the name that Prometheus
// verifies, whatever the name and namespace of the Service are.
func TestMetricsCertificate(t *testing.T) {
	renamed := kustomization(t, absolute(t, "default"), "namespace: platform\nnamePrefix: my-\n", "cert-manager", "prometheus")
	cases := map[string]struct {
		objects           built
		prefix, namespace string
	}{
		"beside the default":    {build(t, "cert-manager", "prometheus", "metrics-certificate"), "", "conversion-system"},
		"on top of other names": {render(t, kustomization(t, renamed, "", "metrics-certificate")), "my-", "platform"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var certificate cmv1.Certificate
			var found monitor
			var manager appsv1.Deployment
			c.objects.read(t, "Certificate conversion-operator-metrics", &certificate)
			c.objects.read(t, "ServiceMonitor "+c.prefix+"conversion-operator", &found)
			c.objects.read(t, "Deployment "+c.prefix+"conversion-operator", &manager)
			serverName := c.prefix + "conversion-operator-metrics." + c.namespace + ".svc"
			expect.Equal(t, "names in the certificate", []string{serverName}, certificate.Spec.DNSNames)
			expect.Equal(t, "namespace of the certificate", c.namespace, certificate.Namespace)
			expect.Equal(t, "namespace of the manager", c.namespace, manager.Namespace)
			if _, found := c.objects["Issuer "+certificate.Spec.IssuerRef.Name]; !found {
				t.Errorf("there is no Issuer %s", certificate.Spec.IssuerRef.Name)
			}
			var want endpoint
			want.Port, want.Scheme, want.BearerTokenFile = "metrics", "https", "/var/run/secrets/kubernetes.io/serviceaccount/token"
			want.TLSConfig.ServerName = serverName
			want.TLSConfig.CA.Secret.Name, want.TLSConfig.CA.Secret.Key = certificate.Spec.SecretName, "ca.crt"
			expect.Equal(t, "endpoints", []endpoint{want}, found.Spec.Endpoints)
			checkMount(t, manager.Spec.Template.Spec, certificate.Spec.SecretName)
		})
	}
}

// checkMount compares the manager's mount with its flag.
func checkMount(t *testing.T, pod corev1.PodSpec, secret string) {
	t.Helper()
	container := pod.Containers[0]
	if len(pod.Volumes) != 1 || len(container.VolumeMounts) != 1 {
		t.Fatalf("volumes %v, mounts %v", pod.Volumes, container.VolumeMounts)
	}
	volume, mount := pod.Volumes[0], container.VolumeMounts[0]
	if volume.Name != mount.Name || volume.Secret == nil || volume.Secret.SecretName != secret || !mount.ReadOnly {
		t.Errorf("volume %+v is mounted as %+v", volume, mount)
	}
	if last := container.Args[len(container.Args)-1]; last != "--metrics-cert-path="+mount.MountPath || container.Args[0] != "manager" {
		t.Errorf("the manager is started with %q", container.Args)
	}
}

// TestOpenShiftMonitors: the cluster's own Prometheus may scrape, and is admitted only together
// with the monitors.
func TestOpenShiftMonitors(t *testing.T) {
	objects := build(t, "prometheus", "openshift")
	want := []rbacv1.Subject{{Kind: "ServiceAccount", Name: "prometheus-k8s", Namespace: "openshift-monitoring"}}
	for _, kind := range []string{"RoleBinding", "ClusterRoleBinding"} {
		var binding rbacv1.RoleBinding
		objects.read(t, kind+" conversion-operator-scrape", &binding)
		expect.Equal(t, "subjects of the "+kind, want, binding.Subjects)
	}
	_, found := build(t, "openshift")["RoleBinding conversion-operator-scrape"]
	expect.Equal(t, "there is a RoleBinding for a Prometheus that nothing is to be scraped by", false, found)
}
