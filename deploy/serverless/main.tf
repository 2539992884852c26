# The serverless pattern: a Lambda that runs the law, a table of levels, a metric and its alarm.
#   deploy/serverless/package.sh && terraform init && terraform apply -var 'endpoints=["vllm-a"]'

terraform {
  required_version = ">= 1.5"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 5.0"
    }
  }
}

resource "aws_dynamodb_table" "signals" {
  name         = "${var.name}-signals"
  billing_mode = "PAY_PER_REQUEST"
  hash_key     = "endpoint_id"

  attribute {
    name = "endpoint_id"
    type = "S"
  }

  ttl {
    attribute_name = "expire_at"
    enabled        = true
  }
}

resource "aws_cloudwatch_log_group" "law" {
  name              = "/aws/lambda/${var.name}-law"
  retention_in_days = 14
}

resource "aws_lambda_function" "law" {
  function_name    = "${var.name}-law"
  role             = aws_iam_role.law.arn
  runtime          = "python3.11"
  handler          = "handler.handler"
  filename         = var.package
  source_code_hash = filebase64sha256(var.package)
  memory_size      = 256
  timeout          = 10

  environment {
    variables = {
      TABLE           = aws_dynamodb_table.signals.name
      BELLMAN_CONTROL = var.control
    }
  }

  depends_on = [aws_cloudwatch_log_group.law]
}

resource "aws_iam_role" "law" {
  name               = "${var.name}-law"
  assume_role_policy = data.aws_iam_policy_document.lambda.json
}

resource "aws_iam_role_policy" "law" {
  name   = "${var.name}-law"
  role   = aws_iam_role.law.id
  policy = data.aws_iam_policy_document.law.json
}

data "aws_iam_policy_document" "lambda" {
  statement {
    actions = ["sts:AssumeRole"]
    principals {
      type        = "Service"
      identifiers = ["lambda.amazonaws.com"]
    }
  }
}

# What the handler calls, and nothing else.
data "aws_iam_policy_document" "law" {
  statement {
    actions   = ["dynamodb:GetItem", "dynamodb:UpdateItem"]
    resources = [aws_dynamodb_table.signals.arn]
  }

  statement {
    actions   = ["cloudwatch:PutMetricData"]
    resources = ["*"] # this action knows no other; the condition narrows it
    condition {
      test     = "StringEquals"
      variable = "cloudwatch:namespace"
      values   = ["BeLLMan"]
    }
  }

  statement {
    actions   = ["logs:CreateLogStream", "logs:PutLogEvents"]
    resources = ["${aws_cloudwatch_log_group.law.arn}:*"]
  }
}

resource "aws_cloudwatch_metric_alarm" "congestion" {
  for_each = toset(var.endpoints)

  alarm_name          = "${var.name}-congestion-${each.value}"
  alarm_description   = "The mean congestion level was high for ten minutes."
  namespace           = "BeLLMan"
  metric_name         = "CongestionLevel"
  dimensions          = { EndpointId = each.value }
  statistic           = "Average"
  period              = 60
  evaluation_periods  = 10
  threshold           = var.alarm_above
  comparison_operator = "GreaterThanThreshold"
  treat_missing_data  = "missing"
  alarm_actions       = var.alarm_actions
}
