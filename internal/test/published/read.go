// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package published

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// Read returns all CustomResourceDefinitions of the projects, sorted by name.
func Read(ctx context.Context, projects ...Project) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var found []*apiextensionsv1.CustomResourceDefinition
	for _, project := range projects {
		dir, err := project.dir(ctx)
		if err != nil {
			return nil, err
		}
		more, err := inFolder(filepath.Join(dir, project.Folder))
		if err != nil {
			return nil, fmt.Errorf("reading the definitions of %s: %w", project.Module, err)
		}
		found = append(found, more...)
	}
	slices.SortFunc(found, func(a, b *apiextensionsv1.CustomResourceDefinition) int { return strings.Compare(a.Name, b.Name) })
	return found, nil
}

// dir downloads the module if necessary, and returns its folder.
func (p Project) dir(ctx context.Context) (string, error) {
	at := p.Module + "@" + p.Version
	download := exec.CommandContext(ctx, "go", "mod", "download", "-json", at)
	// Run outside of every module, so that no go.mod affects the download.
	download.Dir, download.Stderr = os.TempDir(), os.Stderr
	text, err := download.Output()
	if err != nil {
		return "", fmt.Errorf("downloading %s: %w", at, err)
	}
	var module struct{ Dir, Sum string }
	if err := json.Unmarshal(text, &module); err != nil {
		return "", fmt.Errorf("downloading %s: %w", at, err)
	}
	if module.Sum != p.Sum {
		return "", fmt.Errorf("downloading %s: its checksum is %s, not %s", at, module.Sum, p.Sum)
	}
	return module.Dir, nil
}

func inFolder(folder string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var found []*apiextensionsv1.CustomResourceDefinition
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for document := range bytes.SplitSeq(text, []byte("\n---")) {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			// Skip other kinds, and templates.
			if yaml.Unmarshal(document, crd) == nil && crd.Kind == "CustomResourceDefinition" && crd.Spec.Versions != nil {
				found = append(found, crd)
			}
		}
		return nil
	})
	return found, err
}

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
