// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package published

// Project is a Go module with CustomResourceDefinitions.
type Project struct {
	// Module is the path of the module at Version.
	Module, Version string
	// Sum is the module's checksum, as in go.sum.
	Sum string
	// Folder has the CustomResourceDefinitions.
	Folder string
}

// The projects. Of several projects that install the same kinds, this list has one.
var (
	CertManager   = Project{"github.com/cert-manager/cert-manager", "v1.21.2", "h1:UWgoYM+KLNtRlqmoWOKjKBOBUPVHeepQ6/ac3ERJW68=", "deploy/crds"}
	CloudNativePG = Project{"github.com/cloudnative-pg/cloudnative-pg", "v1.26.0", "h1:X+ayWg6TXqglziSPejKiviPTf/CSh4AmYXx1mrS3i8s=", "config/crd/bases"}
	ClusterAPI    = Project{"sigs.k8s.io/cluster-api", "v1.11.3", "h1:apxfugbP1X8AG7THCM74CTarCOW4H2oOc6hlbm1hY80=", "config/crd/bases"}
	Elastic       = Project{"github.com/elastic/cloud-on-k8s/v2", "v2.16.0", "h1:HdXrUx6sy1/2SS7xcRt8Ij6wzyjUV9oirxDMP9m8g88=", "config/crds/v1/resources"}
	External      = Project{"github.com/external-secrets/external-secrets", "v0.10.0", "h1:rgGdClYX5EBotfMBddbUUbWboNvpBPVrsZwTtM2OAr4=", "config/crds/bases"}
	GatewayAPI    = Project{"sigs.k8s.io/gateway-api", "v1.6.0", "h1:735YBRj5NXFrOGX0GoSjwzUIzbz8kiEOfADsqHFmHgE=", "config/crd/standard"}
	Grafana       = Project{"github.com/grafana/grafana-operator/v5", "v5.18.0", "h1:ei7N2VfjsRjY8iprenH1IDV783WeV7CP5VNp//sB4hI=", "config/crd/bases"}
	Karpenter     = Project{"sigs.k8s.io/karpenter", "v1.0.8", "h1:15ZYsFRMHJQTRR5+cvFK2D0V6Cj34fgU0qHPKnmFl68=", "pkg/apis/crds"}
	Kubewarden    = Project{"github.com/kubewarden/kubewarden-controller", "v1.20.0", "h1:+0uVRnNRrKfGJozyyr6Ut0dvX/oDVl8ldO7w+9lsOlQ=", "config/crd/bases"}
	Kueue         = Project{"sigs.k8s.io/kueue", "v0.15.2", "h1:UYjEd8lx3Am1njcvpyEO/QkwCFerE6WW6qaaXNYg768=", "config/components/crd/bases"}
	RabbitMQ      = Project{"github.com/rabbitmq/cluster-operator", "v1.14.0", "h1:1/nMyd9v/8T5IHA1BVcWbV0nrzN31F+gLP+0Ges6Y5E=", "config/crd/bases"}
	Tekton        = Project{"github.com/tektoncd/pipeline", "v1.6.0", "h1:A+D+jzOVl2QNl/yiNT7csVgBUy2wpz6K6+/D4q5lfss=", "config"}
)

// All has every project, sorted by module.
var All = []Project{
	CertManager, CloudNativePG, Elastic, External, Grafana, Kubewarden, RabbitMQ, Tekton,
	ClusterAPI, GatewayAPI, Karpenter, Kueue,
}
