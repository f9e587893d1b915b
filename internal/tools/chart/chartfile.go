// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"

	"sigs.k8s.io/yaml"
)

// catalogue is the part of the ClusterServiceVersion that Chart.yaml repeats.
type catalogue struct {
	Metadata struct {
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		Version        string       `json:"version"`
		MinKubeVersion string       `json:"minKubeVersion"`
		Keywords       []string     `json:"keywords"`
		Maintainers    []maintainer `json:"maintainers"`
	} `json:"spec"`
}

type maintainer struct {
	Name  string `json:"name"`
	Email string `json:"email"`
}

// metadata is the content of Chart.yaml.
type metadata struct {
	APIVersion  string       `json:"apiVersion"`
	Name        string       `json:"name"`
	Description string       `json:"description"`
	Type        string       `json:"type"`
	Version     string       `json:"version"`
	AppVersion  string       `json:"appVersion"`
	KubeVersion string       `json:"kubeVersion"`
	Home        string       `json:"home"`
	Sources     []string     `json:"sources"`
	Keywords    []string     `json:"keywords"`
	Maintainers []maintainer `json:"maintainers"`
}

// chartFile returns Chart.yaml, of the version or else that of the ClusterServiceVersion.
func chartFile(csv, version string) ([]byte, error) {
	text, err := os.ReadFile(csv)
	if err != nil {
		return nil, err
	}
	var from catalogue
	if err := yaml.Unmarshal(text, &from); err != nil {
		return nil, fmt.Errorf("%s: %w", csv, err)
	}
	if version == "" {
		version = from.Spec.Version
	}
	repository := from.Metadata.Annotations["repository"]
	content, err := yaml.Marshal(metadata{
		APIVersion: "v2", Name: "conversion-operator", Type: "application", Version: version, AppVersion: version,
		Description: from.Metadata.Annotations["description"],
		// Prereleases, too: the versions of many providers look like them.
		KubeVersion: ">=" + from.Spec.MinKubeVersion + "-0",
		Home:        repository, Sources: []string{repository}, Keywords: from.Spec.Keywords, Maintainers: from.Spec.Maintainers,
	})
	return append([]byte("# "+strings.TrimSuffix(fmt.Sprintf(generated, "manifests/bases/conversion-operator.clusterserviceversion.yaml"), "\n")+"\n"), content...), err
}
