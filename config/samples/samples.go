// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package samples embeds a sample, with which a playground without files begins.
package samples

import _ "embed" // for the files below

// The sample with a string that becomes five fields: both versions, the policy, and objects.
var (
	//go:embed crontab-cronspec/3-crd-both.yaml
	CronTabs string
	//go:embed crontab-cronspec/2-policy.yaml
	CronTabPolicy string
	//go:embed crontab-cronspec/objects.yaml
	CronTabObjects string
)
